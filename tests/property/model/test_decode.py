"""Laws of decoding: nothing but `InputError` for any document, and one digest for one shape."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kerf.engine.errors import InputError
from kerf.engine.model.manifests.decode import KINDS, Decoded, decode_many, decode_object
from kerf.engine.model.manifests.kubernetes import pods as decode_pods
from kerf.engine.model.manifests.violations import CODES, ManifestError
from tests.support.manifests.nodes_and_claims import CLAIM, NODE
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, POD
from tests.support.repository import ROOT
from tests.support.strategies.examples import examples

Steps = tuple[str | int, ...]

FULL_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": POD["metadata"]
    | {
        "creationTimestamp": "2026-01-15T11:00:00Z",
        "annotations": {"karpenter.sh/do-not-disrupt": "true", "controller.kubernetes.io/pod-deletion-cost": "1"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
        ],
    },
    "spec": {
        "containers": [
            {
                "name": "app",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": 2}},
                "ports": [{"hostPort": 80}, {"hostPort": 443, "protocol": "UDP"}],
            }
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
        "overhead": {"memory": "10Mi"},
        "resources": {"requests": {"cpu": "3"}},
        "nodeSelector": {"a": "b", "c": "d"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}}}
                ]
            },
        },
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1, "labelSelector": {"matchLabels": {"a": "b"}}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "priority": 1,
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "app", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}
        ],
    },
}
FOLDER = ROOT / "docs/examples"
EXAMPLES = sorted(p for p in FOLDER.rglob("*.yaml") if p.parent.name not in ("simulations", "ci"))
VALID: list[dict[str, Any]] = [FULL_POD, NODE, CLAIM, NODE_POOL, EC2_NODE_CLASS] + [
    yaml.safe_load(path.read_text()) for path in EXAMPLES if path.parent.name != "refused"
]

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "Never", "1Gi", "-1", "1e999999", "0001-01-01T00:00:00Z", "In", "9" * 50, "karpenter.sh/x"]),
    st.binary(max_size=3),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
)


def places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """The way to every field and item of a document."""
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield (*steps, step)
        yield from places(child, (*steps, step))


def corrupted(document: dict[str, Any], changes: list[tuple[int, Any]]) -> dict[str, Any]:
    """The document with the value at some places replaced; `...` removes it."""
    result = copy.deepcopy(document)
    for number, value in changes:
        ways = list(places(result))
        if not ways:
            break
        *steps, last = ways[number % len(ways)]
        holder: Any = result
        for step in steps:
            holder = holder[step]
        if value is ...:
            del holder[last]
        else:
            holder[last] = value
    return result


def outcome(document: bytes | dict[str, Any]) -> Decoded | InputError:
    """What becomes of a document: decoded, or refused. Any other exception is a failure of the test."""
    try:
        return decode_object(document)
    except InputError as error:
        return error


@settings(max_examples=examples(400), deadline=None)
@given(
    st.sampled_from(VALID),
    st.lists(st.tuples(st.integers(0, 10**6), st.one_of(JUNK, st.just(...))), min_size=1, max_size=4),
)
def test_a_corrupted_document_is_decoded_or_refused_with_known_codes(
    document: dict[str, Any], changes: list[tuple[int, Any]]
) -> None:
    result = outcome(corrupted(document, changes))
    if isinstance(result, ManifestError):
        paths = [violation.path for violation in result.violations]
        assert paths
        assert len(paths) == len(set(paths))
        assert {violation.code for violation in result.violations} <= set(CODES)
    else:
        assert isinstance(result, Decoded)
        assert msgspec.msgpack.encode(result.object)


@settings(deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JUNK))
def test_junk_of_every_kind_is_decoded_or_refused(name: str, fields: dict[str, Any]) -> None:
    version, _, kind = name.rpartition("/")
    result = outcome({"apiVersion": version, "kind": kind} | fields)
    assert isinstance(result, Decoded) or result.code in CODES


@settings(deadline=None)
@given(st.integers(0, len(json.dumps(FULL_POD)) - 1), st.integers(0, 255))
def test_a_broken_byte_is_decoded_or_refused(index: int, value: int) -> None:
    data = bytearray(json.dumps(FULL_POD).encode())
    data[index] = value
    result = outcome(bytes(data))
    assert isinstance(result, Decoded) or result.code in CODES


@settings(deadline=None)
@given(st.lists(st.one_of(JUNK, st.sampled_from([POD, NODE]))), JUNK)
@example([1, {}], None)
def test_every_item_of_a_list_is_decoded_or_refused(items: list[Any], name: Any) -> None:
    decoded, refused = decode_many({"apiVersion": "v1", "kind": "PodList", "metadata": name, "items": items})
    assert len(decoded) + len(refused) == len(items)


def shuffled(value: Any, draw: Any) -> Any:
    """The same document with the keys of every object in another order."""
    if isinstance(value, dict):
        keys = draw(st.permutations(sorted(value)))
        return {key: shuffled(value[key], draw) for key in keys}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
@settings(deadline=None)
@given(st.data())
def test_the_digest_of_a_pod_does_not_depend_on_the_order_of_keys(data: st.DataObject) -> None:
    decoded = decode_object(json.dumps(shuffled(FULL_POD, data.draw)).encode())
    assert decoded == decode_object(FULL_POD)


CHANGES = st.lists(st.tuples(st.integers(0, 10**6), JUNK), max_size=2)


@settings(deadline=None)
@given(CHANGES, CHANGES)
def test_remembered_shapes_change_no_result(first: list[tuple[int, Any]], second: list[tuple[int, Any]]) -> None:
    """A pod decodes alike with an empty memory of shapes, and after other pods and itself."""
    document = corrupted(FULL_POD, second)
    decode_pods._known.clear()
    cold = outcome(document)
    for earlier in (FULL_POD, corrupted(FULL_POD, first), document):
        outcome(earlier)
    warm = outcome(document)
    if isinstance(cold, Decoded):
        assert warm == cold
    else:
        assert str(warm) == str(cold)
