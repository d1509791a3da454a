"""Objects with `metadata.generateName`: the API server names them, and nobody else does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.input.across_objects import repeated_documents
from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.validate import judge
from kerf.engine.model.manifests.violations import ManifestError
from kerf.replay.scenarios.plan_scenarios import plan_scenario
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL
from tests.support.scenarios.plan_documents import CATALOGUES, scenario
from tests.support.simulation.command import simulated, written

POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": POD["spec"]},
    },
}


def nameless(document: dict[str, Any], begin: object = "web-") -> dict[str, Any]:
    return {**document, "metadata": {"generateName": begin}}


@pytest.mark.parametrize("document", [POD, DEPLOYMENT, NODE_POOL, EC2_NODE_CLASS], ids=lambda found: found["kind"])
def test_validate_takes_an_object_that_the_api_server_names(document: dict[str, Any]) -> None:
    judged = judge(nameless(document), published=published_schemas())
    assert (judged.verdict, judged.object) == ("accepted", f"{document['kind']}/web-?")


def test_a_generate_name_that_makes_no_name_is_refused_where_it_stands() -> None:
    (wrong,) = judge(nameless(NODE_POOL, "Web_")).violations
    assert (wrong.code, wrong.path) == ("KERF312", "metadata.generateName")


@pytest.mark.parametrize("begin", [None, ""])
def test_an_empty_generate_name_is_none(begin: object) -> None:
    (wrong,) = judge(nameless(POD, begin)).violations
    assert (wrong.code, wrong.path) == ("KERF304", "metadata.name")


def test_who_needs_the_name_says_so() -> None:
    with pytest.raises(ManifestError, match="Only the API server completes generateName"):
        decode_object(nameless(POD))
    error = plan_scenario(scenario(pods=[nameless(POD)]), CATALOGUES)["result"]["error"]
    assert "Only the API server completes generateName" in error


def test_simulate_asks_for_the_name_also_of_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = """
apiVersion: batch/v1
kind: Job
metadata: {generateName: batch-}
spec:
  template:
    metadata: {annotations: {kerf.dev/runs-for: 5m}}
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""
    code, outcome = simulated(capsys, written(tmp_path, job), "--until", "1m")
    (refused,) = outcome["refused"]
    assert (code, refused["code"], refused["object"]) == (1, "KERF304", "Job batch-?")
    assert "generateName" in refused["message"]


def test_two_objects_of_one_generate_name_are_two() -> None:
    assert repeated_documents([nameless(POD), nameless(POD)]) == []
