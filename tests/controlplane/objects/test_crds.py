"""The CustomResourceDefinitions on a real API server: it takes them, and judges each case as kerf does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerf.engine.model.crds.definitions import BY_NAME, KINDS, admit
from kerf.engine.model.manifests.violations import Report
from tests.support.controlplane.plane import ControlPlane
from tests.support.manifests.corpus import CASES, CLAIM, Case
from tests.support.manifests.small import NODE_POOL, Document, changed

pytestmark = pytest.mark.slow
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def collection(document: Document) -> str:
    kind = BY_NAME[f"{document['apiVersion']}/{document['kind']}"]
    namespace = "/namespaces/default" if kind.namespaced else ""
    return f"/apis/{kind.api_version}{namespace}/{kind.plural}"


def create(plane: ControlPlane, document: Document, *, dry: bool = False) -> tuple[int, Any]:
    """As kubectl does: an unknown field is an error."""
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    return plane.request("POST", collection(document) + query, document)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])
def test_the_api_server_finds_nothing_wrong_with_a_definition(plane: ControlPlane, kind: Any) -> None:
    """No condition says that the schema is not structural, or a rule too costly."""
    found = plane.get(f"{DEFINITIONS}/{kind.plural}.{kind.group}")
    told = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
    assert told == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_api_server_and_kerf_say_the_same(plane: ControlPlane, case: Case) -> None:
    status, answer = create(plane, case.document, dry=True)
    report = Report()
    admit(case.document, report)
    said = answer.get("message", "")
    assert (status == 201, not report.violations) == (case.accepted, case.accepted), (said, report.violations)
    assert status in {201, 400, 422}, said


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in a document."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


ACCEPTED = [case.document for case in CASES if case.accepted]
ODD: list[Any] = [
    None,
    "",
    0,
    -1,
    1.5,
    1.0,
    True,
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": None},
    "a\n",
    "5m\n",
    "é",
    2**31,
    2**63,
]
FOUND = [at(case.document, path) for case in CASES for path in places(case.document) if len(path) > 1]
VALUES = ODD + [value for value in FOUND if len(str(value)) < 200]


@st.composite
def mangled(draw: st.DrawFn) -> Document:
    """A good manifest in which something was lost, said twice, or put in the place of something else."""
    document = copy.deepcopy(draw(st.sampled_from(ACCEPTED)))
    inside = [path for path in places(document) if len(path) > 1 and path[0] == "spec"]
    for *above, key in draw(st.lists(st.sampled_from(inside), min_size=1, max_size=2)) if inside else ():
        try:
            holder = at(document, tuple(above))
            value = copy.deepcopy(draw(st.sampled_from(VALUES)))  # the second change may be within it
            match draw(st.sampled_from(["replace", "drop", "add"])):
                case "drop":
                    del holder[key]
                case "add" if isinstance(holder, list):
                    holder.append(value)
                case "add":
                    holder[draw(st.sampled_from(["name", "id", "tags", "values", "other"]))] = value
                case _:
                    holder[key] = value
        except (KeyError, IndexError, TypeError):
            continue  # the first change took away the place of the second
    return document


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(document=mangled())
def test_mangled_manifests_are_judged_alike(plane: ControlPlane, document: Document) -> None:
    status, answer = create(plane, document, dry=True)
    report = Report()
    admit(document, report)
    assert (status == 201) == (not report.violations), (answer.get("message"), report.violations)


# ── what changes, and what may not ─────────────────────────────────────────────────────────────────────────────────


def updated(plane: ControlPlane, document: Document, path: str, value: Any) -> int:
    """The status of an update of one field of an object that is there."""
    status, stored = create(plane, document)
    assert status == 201, stored
    place = f"{collection(document)}/{document['metadata']['name']}"
    try:
        return plane.request("PUT", place, changed(stored, path, value))[0]
    finally:
        plane.request("DELETE", place)


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
def test_what_of_a_pool_may_change(plane: ControlPlane, path: str, value: Any, expected: int) -> None:
    """Of a NodePool only the group and kind of its NodeClass, and whether it is static, may not change (L-14, L-28)."""
    assert updated(plane, named(NODE_POOL, "pool"), path, value) == expected


def test_a_static_pool_stays_static(plane: ControlPlane) -> None:
    """A static pool stays static (L-28)."""
    static = changed(named(NODE_POOL, "static"), "spec.replicas", 2)
    assert updated(plane, static, "spec.replicas", 3) == 200
    assert updated(plane, static, "spec.replicas", ...) == 422


@pytest.mark.parametrize(
    ("path", "value"), [("spec.expireAfter", "1h"), ("spec.resources", {"requests": {"cpu": "1"}})]
)
def test_a_claims_spec_may_not_change(plane: ControlPlane, path: str, value: Any) -> None:
    """The spec of a NodeClaim may not change (L-41)."""
    assert updated(plane, named(CLAIM, "claim"), path, value) == 422


def test_a_static_pool_scales_and_a_dynamic_one_does_not(plane: ControlPlane) -> None:
    """A static pool scales and a dynamic one does not (L-1, L-28)."""
    for name, replicas, expected in (("scaled", 2, 200), ("dynamic", ..., 422)):
        pool = named(NODE_POOL, name) if replicas is ... else changed(named(NODE_POOL, name), "spec.replicas", replicas)
        assert create(plane, pool)[0] == 201
        place = f"/apis/karpenter.sh/v1/nodepools/{name}/scale"
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": 4}}
        status, answer = plane.request("PUT", place, scale)
        assert status == expected, answer
        plane.request("DELETE", f"/apis/karpenter.sh/v1/nodepools/{name}")


def test_defaults(plane: ControlPlane) -> None:
    """What is left out has its default (L-15, L-17 to L-21, A-42, L-63)."""
    _, pool = create(plane, named(NODE_POOL, "defaults"), dry=True)
    assert pool["spec"]["template"]["spec"]["expireAfter"] == "720h"
    assert pool["spec"]["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    by_name = {case.name: case.document for case in CASES}
    _, nodes = create(plane, by_name["EC2NodeClass as it is"], dry=True)
    assert nodes["spec"]["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }
    _, kwok = create(plane, by_name["KWOKNodeClass as it is"], dry=True)
    assert kwok["spec"]["nodeRegistrationDelay"] == "0s"
    assert [(condition["type"], condition["status"]) for condition in kwok["status"]["conditions"]] == [
        ("Ready", "True")
    ]
    _, buffer = create(plane, by_name["CapacityBuffer as it is"], dry=True)
    assert buffer["spec"]["provisioningStrategy"] == "buffer.x-k8s.io/active-capacity"
