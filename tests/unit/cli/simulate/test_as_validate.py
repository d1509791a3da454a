"""`kerf simulate` refuses what `kerf validate` refuses, with the same codes and fields."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.input.validation import check_manifests
from tests.support.simulation.command import EXAMPLES, WORKSHOP, simulated, written

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
  FIELD
"""
WRONG = {
    "a pod's field that is mistyped": POD.replace("FIELD", "nodeselector: {a: b}"),
    "a pod's field of the wrong type": POD.replace("FIELD", "terminationGracePeriodSeconds: soon"),
    "a pod's field that kerf does not read": POD.replace("FIELD", "hostNetwork: maybe"),
    "a selector that misses its template": (EXAMPLES / "mistyped/deployment.yaml").read_text(encoding="utf-8"),
    "a Job, which is not simulated": """
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {template: {spec: {restartpolicy: Never, containers: [{name: c, image: i}]}}}
""",
    "a pod's time that is no duration": POD.replace("  FIELD", "").replace(
        "{name: p}", "{name: p, annotations: {kerf.dev/runs-for: soon}}"
    ),
    "the time of a Job's pods that is no duration": """
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    metadata: {annotations: {kerf.dev/runs-for: 5 minutes}}
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
""",
    "a NodePool's field that is mistyped": (EXAMPLES / "workshop/nodepool.yaml")
    .read_text(encoding="utf-8")
    .replace("  disruption:", "  disrupton:"),
    "an object that a Timeline applies": """
apiVersion: kerf.dev/v1alpha1
kind: Timeline
metadata: {name: t}
spec:
  actions:
    - at: 1s
      action: apply
      object: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{nam: c}]}}
""",
}


def validated(file: str) -> set[tuple[str, str]]:
    """Code and field of each violation that `kerf validate` tells."""
    return {(wrong.code, wrong.path) for found in check_manifests([file]) for wrong in found.violations}


def told(outcome: dict[str, Any]) -> set[tuple[str, str]]:
    return set(map(_code_and_field, outcome["refused"]))


def _code_and_field(refused: dict[str, str]) -> tuple[str, str]:
    """Code and field of what `kerf simulate` refuses. The place of what is no object (KERF331) is no field."""
    return refused["code"], refused["field"] * (refused["code"] != "KERF331")


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_validate_refuses_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, text)
    assert validated(file)
    code, outcome = simulated(capsys, WORKSHOP, file, "--until", "1m")
    assert (code, told(outcome)) == (1, validated(file))


@pytest.mark.parametrize("file", sorted((EXAMPLES / "refused").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_examples_of_refused_manifests_are_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, outcome = simulated(capsys, str(file), "--until", "1m")
    assert (code, told(outcome)) == (1, validated(str(file)))


def test_the_rest_goes_on_and_items_of_lists_count_one_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod"}
    good = {**pod, "metadata": {"name": "good", "namespace": "other"}, "spec": spec}
    bad = {**pod, "metadata": {"name": "bad", "namespace": "other"}, "spec": {**spec, "hostnetwork": True}}
    file = written(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [good, bad]}), "list.json")
    code, outcome = simulated(capsys, WORKSHOP, file, "--until", "10m")
    assert (code, told(outcome)) == (1, {("KERF320", "spec.hostnetwork")})
    assert outcome["refused"][0]["object"] == "Pod other/bad"
    assert (outcome["nodes"]["launched"], outcome["pods"]) == (1, {"Running": 1})


SPEC = {"containers": [{"name": "c", "image": "i"}]}
GOOD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "good"}, "spec": SPEC}
BAD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}, "spec": {**SPEC, "hostnetwork": True}}
UNTYPED = {"metadata": {"name": "good"}, "spec": SPEC}
V1 = {"apiVersion": "v1", "kind": "List"}
LISTS: dict[str, Any] = {
    "good and bad": {**V1, "items": [GOOD, BAD]},
    "a list in a list": {**V1, "items": [{**V1, "items": [BAD]}, GOOD]},
    "items that are no objects": {**V1, "items": [GOOD, 5, None, "Pod", [GOOD]]},
    "items that are no list": {**V1, "items": 5},
    "items that are an object": {**V1, "items": GOOD},
    "no items": V1,
    "an empty list": {**V1, "items": []},
    "a list without apiVersion": {"kind": "List", "items": [BAD]},
    "pods that do not say what they are": {"apiVersion": "v1", "kind": "PodList", "items": [UNTYPED, {"spec": 5}]},
    "pods among which is another": {"apiVersion": "v1", "kind": "PodList", "items": [BAD, {"kind": "Pood"}]},
    "NodePools": {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePoolList",
        "items": [{"metadata": {"name": "p"}, "spec": {"template": {}}}],
    },
    "a kind that nobody knows": {"apiVersion": "v1", "kind": "PoodList", "items": [{"metadata": {"name": "p"}}]},
}  # fmt: skip


@pytest.mark.parametrize("applied", [False, True], ids=["in a file", "in a Timeline"])
def test_items_of_lists_are_refused_and_accepted_by_both(
    applied: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each list has a file of its own, and its pods have names of their own."""
    files = []
    for number, (name, document) in enumerate(LISTS.items()):
        text = json.dumps(document).replace('"good"', f'"good-{number}"').replace('"bad"', f'"bad-{number}"')
        action = {"at": "1s", "action": "apply", "object": json.loads(text)}
        timeline = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": f"t{number}"}}
        applying = json.dumps({**timeline, "spec": {"actions": [action]}})
        files.append(written(tmp_path, applying if applied else text, f"{name}.json"))
    _, outcome = simulated(capsys, WORKSHOP, *files, "--until", "2s")
    checked = check_manifests([WORKSHOP, *files])
    wrong = Counter((wrong.code, wrong.path) for found in checked for wrong in found.violations)
    assert Counter(_code_and_field(refused) for refused in outcome["refused"]) == wrong
    accepted = [found.object for found in checked if found.verdict == "accepted" and "good-" in found.object]
    assert len(accepted) == 4
    assert sum(outcome["pods"].values()) == len(accepted)


def test_an_object_that_stands_in_two_files_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by `kerf validate`: the API server takes both, one after the other."""
    again = (EXAMPLES / "workshop/nodepool.yaml").read_text(encoding="utf-8")
    file = written(tmp_path, again)
    code, outcome = simulated(capsys, WORKSHOP, file, "--until", "1m")
    assert (code, outcome["refused"]) == (0, [])
    text = "it stands in these files twice; the last one counts"
    assert outcome["notes"] == [{"object": "NodePool default", "code": "stands-twice", "text": text}]
    assert any(text[len("it ") :] in note for found in check_manifests([WORKSHOP, file]) for note in found.notes)
