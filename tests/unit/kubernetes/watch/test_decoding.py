"""Objects that the API server holds are read also where a controller refuses them: their conditions are to say so."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from kerf.adapters.kubernetes.watch.decoding import reader
from kerf.engine.model.crds.kubelet import kubelet_problem
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.manifests.decode import KINDS, Kind
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import Read
from kerf.engine.record.observations import InputRefused, Observation
from kerf.projections.status.nodepool import nodepool_conditions
from tests.support.lives import asked
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, changed, refusals
from tests.support.world import NODE_CLASS

TWICE = [{"key": "a", "effect": "NoSchedule", "value": value} for value in ("x", "y")]
NOT_VALID = [
    ("spec.template.spec.taints", TWICE, "taint a:NoSchedule stands there twice"),
    ("spec.template.metadata", {"labels": {"a b": "x"}}, "label a b is not a qualified name"),
]


def seen(document: dict[str, Any]) -> Read | InputRefused:
    return reader(f"{document['apiVersion']}/{document['kind']}")(Raw(json.dumps(document).encode()))


@pytest.mark.parametrize(("field", "value", "message"), NOT_VALID, ids=["taint", "label"])
def test_l252_l254_a_nodepool_that_becomes_invalid_says_so_and_launches_nothing(
    field: str, value: object, message: str
) -> None:
    """The API server lets it pass (L-36, L-37): who reads it as it was goes on launching by what it was."""
    document = changed(NODE_POOL, field, value)
    read = seen(document)
    assert isinstance(read, Read)
    assert isinstance(read.object, NodePool)
    world = asked()
    launched = len(world.runtime.state.facts.claims)
    world.see(Observation(replace(read.object, node_class=NODE_CLASS, requirements=())))
    (verdict, *_) = nodepool_conditions(world.runtime.state, "default")
    assert (verdict.status, verdict.reason, verdict.message) == ("False", "NodePoolValidationFailed", message)
    world.pending("later", memory=4 << 30)
    assert world.after(10_000) == []
    assert len(world.runtime.state.facts.claims) == launched
    assert refusals(document), "its author hears of it before (kerf validate)"


@pytest.mark.parametrize("limit", ["-1", "-500m"])
def test_s68_a_nodepool_whose_limit_is_below_zero_launches_nothing(limit: str) -> None:
    """The API server lets it pass: who reads the NodePool as it was goes on launching by what it was."""
    document = changed(NODE_POOL, "spec.limits", {"cpu": limit, "memory": "1Gi"})
    read = seen(document)
    assert isinstance(read, Read)
    assert isinstance(read.object, NodePool)
    assert (read.object.limits or {})["cpu"] == 0
    world = asked()
    launched = len(world.runtime.state.facts.claims)
    world.see(Observation(replace(read.object, node_class=NODE_CLASS, requirements=())))
    world.pending("later", memory=4 << 30)
    world.after(10_000)
    assert len(world.runtime.state.facts.claims) == launched
    assert refusals(document), "its author hears of it before (kerf validate)"


@pytest.mark.parametrize("field", ["template.spec.expireAfter", "disruption.consolidateAfter"])
def test_a_nodepool_with_a_duration_longer_than_any_is_read(field: str) -> None:
    """The API server's pattern lets it pass."""
    document = changed(NODE_POOL, f"spec.{field}", "9" * 30 + "h")
    read = seen(document)
    assert isinstance(read, Read)
    assert isinstance(read.object, NodePool)
    assert None in (read.object.expire_after, read.object.consolidate_after)
    assert refusals(document), "its author hears of it before (kerf validate)"
    assert isinstance(seen(changed(NODE_POOL, f"spec.{field}", "soon")), InputRefused)


def test_what_admission_itself_refuses_is_refused_of_a_watch_too() -> None:
    assert isinstance(seen(changed(NODE_POOL, "spec.weight", 0)), InputRefused)


@pytest.mark.parametrize("number", [10**19, -(10**19), 2**64])
def test_a63_a_class_with_an_integer_beyond_64_bits_is_read(number: int) -> None:
    """The API server holds it as a float. It was refused, and had no condition."""
    document = changed(EC2_NODE_CLASS, "spec.kubelet", {"maxPods": number, "evictionHard": {"x": [number, True]}})
    read = seen(document)
    assert isinstance(read, Read)
    assert isinstance(read.object, EC2NodeClass)
    assert kubelet_problem(read.object.spec.kubelet, "AL2023") is not None
    assert msgspec.msgpack.encode(read.object), "a record can hold it"
    assert refusals(document), "its author hears of it before (kerf validate)"


def test_a63_a_class_with_an_integer_that_nothing_can_hold_is_refused() -> None:
    assert isinstance(seen(changed(EC2_NODE_CLASS, "spec.kubelet", {"maxPods": 10**400})), InputRefused)


def test_a63_a_class_whose_volume_has_no_size_is_read() -> None:
    """The definition's pattern lets it pass (A-37)."""
    document = changed(EC2_NODE_CLASS, "spec.blockDeviceMappings", [{"ebs": {"volumeSize": "Ti"}}])
    assert isinstance(seen(document), Read)


def test_a126_of_a_classs_status_only_what_cannot_be_read_is_left_out() -> None:
    """A controller writes it anew. It kept the class from being read, and so from having another one."""
    reservations = [
        {"id": "cr-1", "endTime": "2026-03-01T00:00:00Z"},
        {"id": "cr-2", "endTime": "soon"},
        {"id": "cr-3"},
    ]
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "never"}]
    status = {"capacityReservations": reservations, "conditions": conditions}
    read = seen(EC2_NODE_CLASS | {"status": status})
    assert isinstance(read, Read)
    assert isinstance(read.object, EC2NodeClass)
    assert [held.id for held in read.object.status.capacity_reservations] == ["cr-1", "cr-3"]
    assert [(each.type, each.since) for each in read.object.status.conditions] == [("Ready", 0)]


def test_an_object_over_which_a_reader_fails_harms_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """StopIteration over one ResourceSlice would have ended the controller, after each start again."""
    api, read = "karpenter.sh/v1/NodePool", KINDS["karpenter.sh/v1/NodePool"].read

    def failing(data: bytes, report: Report) -> Read:
        if b"unlucky" in bytes(data):
            raise StopIteration("nothing there")
        return read(data, report)

    monkeypatch.setitem(KINDS, api, Kind(KINDS[api].wire, failing))
    refused = seen(changed(NODE_POOL, "metadata.name", "unlucky"))
    assert isinstance(refused, InputRefused)
    assert (refused.code, refused.object) == ("KERF605", "NodePool/unlucky")
    assert "StopIteration" in refused.message
    assert "docs/security.md" in refused.message
    assert isinstance(seen(NODE_POOL), Read)
