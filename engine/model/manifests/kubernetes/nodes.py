"""Nodes."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.kubernetes.nodes import REPAIRED, Node, NodeCondition
from kerf.engine.model.labels import PROPOSED_TAINT
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    ConditionWire,
    ObjectWire,
    Quantities,
    Read,
    TaintWire,
    Wire,
    condition,
    karpenter_annotations,
    read_resources,
    read_taints,
    read_time,
    require_name,
)


class NodeSpecWire(Wire):
    provider_id: str = field(name="providerID", default="")
    taints: list[TaintWire] = []


class NodeStatusWire(Wire):
    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: list[ConditionWire] = []


class NodeWire(ObjectWire):
    spec: NodeSpecWire = field(default_factory=NodeSpecWire)
    status: NodeStatusWire = field(default_factory=NodeStatusWire)


_read = msgspec.json.Decoder(NodeWire).decode


def read_node(data: bytes, report: Report) -> Read:
    """A v1 Node."""
    wire = _read(data)
    metadata, status = wire.metadata, wire.status
    require_name(report, metadata)
    ready = condition(status.conditions, "Ready")
    at = f"status.conditions[{status.conditions.index(ready)}].lastTransitionTime" if ready else ""
    taints = read_taints(report, "spec.taints", wire.spec.taints)
    node = Node(
        name=metadata.name,
        uid=metadata.uid,
        provider_id=wire.spec.provider_id,
        created=read_time(report, "metadata.creationTimestamp", metadata.creation_timestamp),
        labels=metadata.labels,
        annotations=karpenter_annotations(metadata.annotations),
        taints=tuple(taint for taint in taints if taint.key != PROPOSED_TAINT),
        capacity=read_resources(report, "status.capacity", status.capacity),
        allocatable=read_resources(report, "status.allocatable", status.allocatable),
        ready=ready is not None and ready.status == "True",
        ready_since=read_time(report, at, ready.last_transition_time) if ready else 0,
        deleting=read_time(report, "metadata.deletionTimestamp", metadata.deletion_timestamp),
        conditions=tuple(
            NodeCondition(
                found.type,
                found.status,
                read_time(report, f"status.conditions[{index}].lastTransitionTime", found.last_transition_time),
            )
            for index, found in enumerate(status.conditions)
            if found.type in REPAIRED and found.status != "True"
        ),
        proposed=any(taint.key == PROPOSED_TAINT for taint in taints),
    )
    return Read(node, {})
