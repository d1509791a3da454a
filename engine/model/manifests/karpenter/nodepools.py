"""NodePools, NodeClaims and KWOKNodeClasses (karpenter.sh/v1)."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kerf.engine.model.crds.check import check_document
from kerf.engine.model.crds.kwoknodeclasses import KWOK_NODE_CLASS
from kerf.engine.model.crds.nodepools import NODE_POOL, SEEN_CLAIM, THIRTY_DAYS
from kerf.engine.model.cron import unreadable
from kerf.engine.model.durations import parse_duration, parse_nillable_duration
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject
from kerf.engine.model.karpenter.nodepool_hash import hashed
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.labels import NODEPOOL_HASH_VERSION
from kerf.engine.model.manifests.karpenter.nodepools_wire import (
    BudgetWire,
    ClaimTemplateSpecWire,
    KWOKNodeClassWire,
    NodeClaimWire,
    NodePoolWire,
)
from kerf.engine.model.manifests.rules.controllers import NODEPOOL_RULES
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    ConditionWire,
    NodeClassRefWire,
    Read,
    RequirementWire,
    condition,
    read_resources,
    read_taints,
    read_time,
    require_name,
)

BAD_BUDGET = "bad-budget"
"""The note on a budget whose schedule nobody can read."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""A whole object in an annotation."""
_read_pool = msgspec.json.Decoder(NodePoolWire).decode
_read_claim = msgspec.json.Decoder(NodeClaimWire).decode
_read_kwok = msgspec.json.Decoder(KWOKNodeClassWire).decode


class KWOKNodeClass(Struct, frozen=True, omit_defaults=True):
    """karpenter.kwok.sh/v1alpha1 (L-5, L-63). The delay is in milliseconds."""

    name: str
    uid: str = ""
    generation: int = 0
    registration_delay: int = 0
    ready: bool = True
    deleting: int = 0
    reason: str = ""  # of its condition Ready, while that is not True


def read_node_pool(data: bytes, report: Report) -> Read:
    """A karpenter.sh/v1 NodePool (L-9…L-29). One that is `admitted` and not valid has to be read all the same: it is to
    have the condition that says so, and no more nodes (L-252, L-254)."""
    wire = _read_pool(data)
    require_name(report, wire.metadata)
    check_document(NODE_POOL, msgspec.json.decode(data), report)
    for rule in NODEPOOL_RULES if not report.admitted else ():
        rule(wire, report)
    spec, disruption = wire.spec, wire.spec.disruption
    path, template = "spec.template.spec", wire.spec.template.spec or ClaimTemplateSpecWire()
    ready = condition(wire.status.conditions, "Ready")
    metadata = spec.template.metadata
    pool = NodePool(
        name=wire.metadata.name,
        node_class=_node_class(template.node_class_ref),
        uid=wire.metadata.uid,
        requirements=_requirements(template.requirements),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        taints=read_taints(report, f"{path}.taints", template.taints),
        startup_taints=read_taints(report, f"{path}.startupTaints", template.startup_taints),
        expire_after=_expire_after(report, path, template),
        termination_grace_period=_grace_period(report, path, template),
        consolidation_policy=disruption.consolidation_policy or "WhenEmptyOrUnderutilized",
        consolidate_after=_nillable(report, "spec.disruption.consolidateAfter", disruption.consolidate_after or "0s"),
        budgets=_budgets(report, wire.metadata.name, disruption.budgets),
        limits=None if spec.limits is None else read_resources(report, "spec.limits", spec.limits),
        weight=spec.weight or 0,
        replicas=spec.replicas,
        ready=ready is None or ready.status == "True",
        deleting=read_time(report, "metadata.deletionTimestamp", wire.metadata.deletion_timestamp),
        generation=wire.metadata.generation,
        hash_version=wire.metadata.annotations.get(NODEPOOL_HASH_VERSION, ""),
    )
    maps = {"labels": metadata.labels, "annotations": metadata.annotations}
    return Read(hashed(pool, empty=[name for name, found in maps.items() if found == {}]), {})


def read_node_claim(data: bytes, report: Report) -> Read:
    """A karpenter.sh/v1 NodeClaim (L-41…L-46)."""
    wire = _read_claim(data)
    require_name(report, wire.metadata)
    check_document(SEEN_CLAIM, msgspec.json.decode(data), report)
    spec, status = wire.spec, wire.status
    claim = NodeClaimObject(
        name=wire.metadata.name,
        node_class=_node_class(spec.node_class_ref),
        uid=wire.metadata.uid,
        labels=wire.metadata.labels,
        annotations={key: text for key, text in wire.metadata.annotations.items() if key != LAST_APPLIED},
        requirements=_requirements(spec.requirements),
        taints=read_taints(report, "spec.taints", spec.taints),
        startup_taints=read_taints(report, "spec.startupTaints", spec.startup_taints),
        requests=read_resources(report, "spec.resources.requests", spec.resources.requests),
        expire_after=_expire_after(report, "spec", spec),
        termination_grace_period=_grace_period(report, "spec", spec),
        provider_id=status.provider_id,
        node=status.node_name,
        image=status.image_id,
        capacity=read_resources(report, "status.capacity", status.capacity),
        allocatable=read_resources(report, "status.allocatable", status.allocatable),
        conditions=read_conditions(report, status.conditions),
        last_pod_event=read_time(report, "status.lastPodEventTime", status.last_pod_event_time),
        created=read_time(report, "metadata.creationTimestamp", wire.metadata.creation_timestamp),
        deleting=read_time(report, "metadata.deletionTimestamp", wire.metadata.deletion_timestamp),
    )
    return Read(claim, {})


def read_kwok_node_class(data: bytes, report: Report) -> Read:
    """A karpenter.kwok.sh/v1alpha1 KWOKNodeClass: ready from birth (L-63)."""
    wire = _read_kwok(data)
    require_name(report, wire.metadata)
    check_document(KWOK_NODE_CLASS, msgspec.json.decode(data), report)
    delay = wire.spec.node_registration_delay or "0s"
    ready = condition(wire.status.conditions, "Ready")
    node_class = KWOKNodeClass(
        name=wire.metadata.name,
        uid=wire.metadata.uid,
        generation=wire.metadata.generation,
        registration_delay=report.attempt("spec.nodeRegistrationDelay", parse_duration, delay, otherwise=0),
        ready=ready is None or ready.status == "True",
        deleting=read_time(report, "metadata.deletionTimestamp", wire.metadata.deletion_timestamp),
        reason=ready.reason if ready is not None and ready.status != "True" else "",
    )
    return Read(node_class, {})


def read_conditions(report: Report, wires: list[ConditionWire]) -> tuple[Condition, ...]:
    """status.conditions, in the order given."""
    return tuple(
        Condition(
            wire.type,
            wire.status,
            wire.reason,
            wire.message,
            read_time(report, f"status.conditions[{index}].lastTransitionTime", wire.last_transition_time),
        )
        for index, wire in enumerate(wires)
    )


def _node_class(ref: NodeClassRefWire | None) -> NodeClassRef:
    return NodeClassRef(ref.group, ref.kind, ref.name) if ref else NodeClassRef("", "", "")


def _requirements(wires: list[RequirementWire] | None) -> tuple[RequirementSpec, ...]:
    return tuple(
        RequirementSpec(wire.key, wire.operator, tuple(wire.values or ()), wire.min_values) for wire in wires or ()
    )


def _expire_after(report: Report, path: str, spec: ClaimTemplateSpecWire) -> int | None:
    return _nillable(report, f"{path}.expireAfter", spec.expire_after or THIRTY_DAYS)  # L-15


def _grace_period(report: Report, path: str, spec: ClaimTemplateSpecWire) -> int | None:
    """The grace period in ms: unset is None; 0s is legal and means at once (L-16)."""
    if spec.termination_grace_period is None:
        return None
    where = f"{path}.terminationGracePeriod"
    return report.attempt(where, parse_duration, spec.termination_grace_period, otherwise=0)


def _nillable(report: Report, path: str, text: str) -> int | None:
    """A duration, None for Never. Of an `admitted` object one that is longer than any is never over: admission has seen
    to what else may be wrong with it, and told."""
    said = Report() if report.admitted else report
    return said.attempt(path, parse_nillable_duration, text, otherwise=None)


def _budgets(report: Report, pool: str, wires: list[BudgetWire] | None) -> tuple[Budget, ...]:
    """The budgets: absent is one of 10%; an explicit empty list is no cap (L-20). The rules have checked the
    texts, but for schedules: one that nobody can read is kept, and stops all that is voluntary (D-48)."""
    if wires is None:
        return (Budget(),)
    for index, wire in enumerate(wires):
        fault = unreadable(wire.schedule) if wire.schedule is not None else None
        if fault is not None:
            report.note(BAD_BUDGET, nodepool=pool, budget=index, error=fault.message, hint=fault.hint)
    return tuple(
        Budget(
            nodes="10%" if wire.nodes is None else wire.nodes,
            schedule=wire.schedule,
            duration=_window(wire.duration),
            reasons=tuple(wire.reasons or ()),
        )
        for wire in wires
        if wire.reasons != []
    )


def _window(duration: str | None) -> int | None:
    """Milliseconds of a budget's window; a text that admission has reported already counts as none."""
    return Report().attempt("", parse_duration, duration, otherwise=None) if duration is not None else None
