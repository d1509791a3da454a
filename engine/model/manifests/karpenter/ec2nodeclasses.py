"""EC2NodeClasses (karpenter.k8s.aws/v1)."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import sys
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
from kerf.engine.model.manifests.rules.controllers import EC2NODECLASS_RULES, RECORD_RULES
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
    """A karpenter.k8s.aws/v1 EC2NodeClass (A-25…A-45, A-54). One that is `admitted` and not valid has to be read all
    the same: it is to have the condition that says so, and no more nodes (A-63)."""
    wire = _read(data)
    metadata = wire.metadata
    require_name(report, metadata)
    check_document(EC2_NODE_CLASS, msgspec.json.decode(data), report)
    spec = replace(wire.spec, kubelet=_stored(wire.spec.kubelet, admitted=report.admitted))
    for rule in RECORD_RULES if report.admitted else EC2NODECLASS_RULES:
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


def _stored(value: Any, *, admitted: bool) -> Any:
    """Returns a part of an open object as the API server gives it back: a number without a fraction is an integer, for
    whoever reads it. No schema of msgspec's sees to that there. What is `admitted` and beyond 64 bits is a float to the
    API server.
    """
    if isinstance(value, dict):
        return {key: _stored(part, admitted=admitted) for key, part in value.items()}
    if isinstance(value, list):
        return [_stored(part, admitted=admitted) for part in value]
    if admitted and isinstance(value, int) and LARGEST_AMOUNT < abs(value) <= sys.float_info.max:
        return float(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_AMOUNT else value


def _status(report: Report, wire: StatusWire) -> EC2NodeClassStatus:
    """The status. Of an `admitted` class nothing in it is a violation, since a controller writes it anew; a reservation
    that ends at no time is left out, as nobody could say when."""
    said = Report() if report.admitted else report
    reservations = []
    for index, held in enumerate(wire.capacity_reservations):
        ends = read_time(said, f"status.capacityReservations[{index}].endTime", held.end_time)
        if ends or not held.end_time:
            reservations.append(held)
    return EC2NodeClassStatus(
        subnets=wire.subnets,
        security_groups=wire.security_groups,
        amis=tuple(_ami(ami) for ami in wire.amis),
        instance_profile=wire.instance_profile,
        capacity_reservations=tuple(reservations),
        conditions=read_conditions(said, wire.conditions),
    )


def _ami(wire: AMIStatusWire) -> ResolvedAMI:
    requirements = tuple(
        RequirementSpec(item.key, item.operator, tuple(item.values or ()), item.min_values)
        for item in wire.requirements
    )
    return ResolvedAMI(wire.id, wire.name, wire.deprecated, requirements)
