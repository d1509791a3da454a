"""EC2NodeClasses (karpenter.k8s.aws/v1)."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field
from msgspec.structs import replace

from kerf.engine.model.crds.check import check_document
from kerf.engine.model.crds.ec2nodeclasses import EC2_NODE_CLASS
from kerf.engine.model.karpenter.ec2nodeclasses import (
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    ResolvedAMI,
    ResolvedReservation,
    ResolvedSecurityGroup,
    ResolvedSubnet,
)
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.manifests.karpenter.nodepools import read_conditions
from kerf.engine.model.manifests.rules.controllers import EC2NODECLASS_RULES
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    ConditionWire,
    ObjectWire,
    Read,
    RequirementWire,
    Wire,
    karpenter_annotations,
    read_time,
    require_name,
)
from kerf.engine.model.quantities import LARGEST_AMOUNT


class AMIStatusWire(Wire):
    id: str = ""
    name: str = ""
    deprecated: bool = False
    requirements: list[RequirementWire] = []


class StatusWire(Wire):
    subnets: tuple[ResolvedSubnet, ...] = ()
    security_groups: tuple[ResolvedSecurityGroup, ...] = ()
    amis: list[AMIStatusWire] = []
    instance_profile: str = ""
    capacity_reservations: tuple[ResolvedReservation, ...] = ()
    conditions: list[ConditionWire] = []


class EC2NodeClassWire(ObjectWire):
    spec: EC2NodeClassSpec = EC2NodeClassSpec()
    status: StatusWire = field(default_factory=StatusWire)


_read = msgspec.json.Decoder(EC2NodeClassWire).decode


def read_ec2_node_class(data: bytes, report: Report) -> Read:
    """A karpenter.k8s.aws/v1 EC2NodeClass (A-25…A-45, A-54)."""
    wire = _read(data)
    metadata = wire.metadata
    require_name(report, metadata)
    check_document(EC2_NODE_CLASS, msgspec.json.decode(data), report)
    spec = replace(wire.spec, kubelet=_stored(wire.spec.kubelet))
    for rule in EC2NODECLASS_RULES:
        rule(spec, report)
    node_class = EC2NodeClass(
        name=metadata.name,
        spec=spec,
        status=_status(report, wire.status),
        uid=metadata.uid,
        generation=metadata.generation,
        annotations=karpenter_annotations(metadata.annotations),
        created=read_time(report, "metadata.creationTimestamp", metadata.creation_timestamp),
        deleting=read_time(report, "metadata.deletionTimestamp", metadata.deletion_timestamp),
    )
    return Read(node_class, {})


def _stored(value: Any) -> Any:
    """Returns a part of an open object as the API server gives it back: a number without a fraction is an integer, for
    whoever reads it. No schema of msgspec's sees to that there.
    """
    if isinstance(value, dict):
        return {key: _stored(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_stored(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_AMOUNT else value


def _status(report: Report, wire: StatusWire) -> EC2NodeClassStatus:
    for index, held in enumerate(wire.capacity_reservations):
        read_time(report, f"status.capacityReservations[{index}].endTime", held.end_time)
    return EC2NodeClassStatus(
        subnets=wire.subnets,
        security_groups=wire.security_groups,
        amis=tuple(_ami(ami) for ami in wire.amis),
        instance_profile=wire.instance_profile,
        capacity_reservations=wire.capacity_reservations,
        conditions=read_conditions(report, wire.conditions),
    )


def _ami(wire: AMIStatusWire) -> ResolvedAMI:
    requirements = tuple(
        RequirementSpec(item.key, item.operator, tuple(item.values or ()), item.min_values)
        for item in wire.requirements
    )
    return ResolvedAMI(wire.id, wire.name, wire.deprecated, requirements)
