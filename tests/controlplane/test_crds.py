"""The CustomResourceDefinitions on a real API server: it takes them, and judges each case as kerf does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.engine.model.crds.kinds import BY_NAME, KINDS, admit
from kerf.engine.model.manifests.violations import Report
from tests.controlplane.plane import CONDITION, ControlPlane, assets
from tests.support.manifest_corpus import CASES, CLAIM, Case
from tests.unit.model.manifests import NODE_POOL, Document, changed

pytestmark = [pytest.mark.slow, pytest.mark.skipif(assets() is None, reason=CONDITION)]
CRDS = Path(__file__).parents[2] / "deploy" / "crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE = 30  # seconds until a definition is served


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with the definitions of deploy/crds."""
    binaries = assets()
    assert binaries is not None, CONDITION
    plane = ControlPlane(binaries, tmp_path_factory.mktemp("api"))
    try:
        plane.start()
        for file in sorted(CRDS.glob("*.yaml")):
            status, answer = plane.request("POST", DEFINITIONS, yaml.safe_load(file.read_text()))
            assert status == 201, answer
        for kind in KINDS:
            until = time.monotonic() + PATIENCE
            while plane.request("GET", f"/apis/{kind.api_version}/{kind.plural}")[0] != 200:
                assert time.monotonic() < until, f"{kind.plural} is not served"
                time.sleep(0.05)
        yield plane
    finally:
        plane.stop()


def collection(document: Document) -> str:
    kind = BY_NAME[f"{document['apiVersion']}/{document['kind']}"]
    namespace = "/namespaces/default" if kind.namespaced else ""
    return f"/apis/{kind.api_version}{namespace}/{kind.plural}"


def create(api: ControlPlane, document: Document, *, dry: bool = False) -> tuple[int, Any]:
    """As kubectl does: an unknown field is an error."""
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    return api.request("POST", collection(document) + query, document)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])
def test_the_api_server_finds_nothing_wrong_with_a_definition(api: ControlPlane, kind: Any) -> None:
    """No condition says that the schema is not structural, or a rule too costly."""
    found = api.get(f"{DEFINITIONS}/{kind.plural}.{kind.group}")
    told = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert told == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_api_server_and_kerf_say_the_same(api: ControlPlane, case: Case) -> None:
    status, answer = create(api, case.document, dry=True)
    report = Report()
    admit(case.document, report)
    said = answer.get("message", "")
    assert (status == 201, not report.violations) == (case.accepted, case.accepted), (said, report.violations)
    assert status in {201, 400, 422}, said


# ── what changes, and what may not ─────────────────────────────────────────────────────────────────────────────────


def updated(api: ControlPlane, document: Document, path: str, value: Any) -> int:
    """The status of an update of one field of an object that is there."""
    status, stored = create(api, document)
    assert status == 201, stored
    place = f"{collection(document)}/{document['metadata']['name']}"
    try:
        return api.request("PUT", place, changed(stored, path, value))[0]
    finally:
        api.request("DELETE", place)


def named(document: Document, name: str) -> Document:
    return document | {"metadata": {"name": name}}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("spec.template.spec.nodeClassRef.name", "another", 200),
        ("spec.template.spec.nodeClassRef.kind", "Another", 422),
        ("spec.template.spec.nodeClassRef.group", "another", 422),
        ("spec.replicas", 3, 422),
        ("spec.weight", 3, 200),
    ],
)
def test_what_of_a_pool_may_change(api: ControlPlane, path: str, value: Any, expected: int) -> None:
    """L-14, L-28."""
    assert updated(api, named(NODE_POOL, "pool"), path, value) == expected


def test_a_static_pool_stays_static(api: ControlPlane) -> None:
    """L-28."""
    static = changed(named(NODE_POOL, "static"), "spec.replicas", 2)
    assert updated(api, static, "spec.replicas", 3) == 200
    assert updated(api, static, "spec.replicas", ...) == 422


@pytest.mark.parametrize(
    ("path", "value"), [("spec.expireAfter", "1h"), ("spec.resources", {"requests": {"cpu": "1"}})]
)
def test_a_claims_spec_may_not_change(api: ControlPlane, path: str, value: Any) -> None:
    """L-41."""
    assert updated(api, named(CLAIM, "claim"), path, value) == 422


def test_a_static_pool_scales_and_a_dynamic_one_does_not(api: ControlPlane) -> None:
    """L-1, L-28."""
    for name, replicas, expected in (("scaled", 2, 200), ("dynamic", ..., 422)):
        pool = named(NODE_POOL, name) if replicas is ... else changed(named(NODE_POOL, name), "spec.replicas", replicas)
        assert create(api, pool)[0] == 201
        place = f"/apis/karpenter.sh/v1/nodepools/{name}/scale"
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": 4}}
        status, answer = api.request("PUT", place, scale)
        assert status == expected, answer
        api.request("DELETE", f"/apis/karpenter.sh/v1/nodepools/{name}")


def test_defaults(api: ControlPlane) -> None:
    """L-15, L-17 to L-21, A-42, L-63."""
    _, pool = create(api, named(NODE_POOL, "defaults"), dry=True)
    assert pool["spec"]["template"]["spec"]["expireAfter"] == "720h"
    assert pool["spec"]["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    by_name = {case.name: case.document for case in CASES}
    _, nodes = create(api, by_name["EC2NodeClass as it is"], dry=True)
    assert nodes["spec"]["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }
    _, kwok = create(api, by_name["KWOKNodeClass as it is"], dry=True)
    assert kwok["spec"]["nodeRegistrationDelay"] == "0s"
    assert [(each["type"], each["status"]) for each in kwok["status"]["conditions"]] == [("Ready", "True")]
    _, buffer = create(api, by_name["CapacityBuffer as it is"], dry=True)
    assert buffer["spec"]["provisioningStrategy"] == "buffer.x-k8s.io/active-capacity"
