"""Makes the NodeClaim object of karpenter.sh/v1 for an aggregate (L-41…L-46, L-139…L-143)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kerf.engine.model import labels as names
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import hash_annotations
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.nodeclaim.claim import NodeClaim

Document = dict[str, Any]

_MAX_MESSAGE = 32_768  # characters of a condition's message, as the API server has it


def claim_document(claim: NodeClaim, pool_uid: str) -> Document:
    """Returns the object without its status. It has no owner if there is no NodePool."""
    metadata: Document = {
        "name": claim.name,
        "labels": dict(claim.labels),
        "annotations": {**claim.annotations, **_class_hash(claim), **_deadline(claim)},
        "finalizers": [names.TERMINATION_FINALIZER],
    }
    if pool_uid:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "name": claim.node_pool,
                "uid": pool_uid,
                "blockOwnerDeletion": True,
            }
        ]
    ref = claim.node_class
    spec: Document = {
        "nodeClassRef": {"group": ref.group, "kind": ref.kind, "name": ref.name},
        "requirements": [_requirement(requirement) for requirement in claim.requirements],
        "resources": {"requests": quantities(claim.requests)},
        "expireAfter": duration(claim.expire_after),
    }
    if claim.taints:
        spec["taints"] = [taint_document(taint) for taint in claim.taints]
    if claim.startup_taints:
        spec["startupTaints"] = [taint_document(startup_taint) for startup_taint in claim.startup_taints]
    if claim.termination_grace_period is not None:
        spec["terminationGracePeriod"] = duration(claim.termination_grace_period)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec}


def _class_hash(claim: NodeClaim) -> dict[str, str]:
    """Returns by which terms of its NodeClass the claim was launched (A-318): whoever adopts it can compare them."""
    ref = claim.node_class
    return hash_annotations(f"{ref.group}/{ref.kind.lower()}-hash", claim.class_hash, claim.annotations)


def _deadline(claim: NodeClaim) -> dict[str, str]:
    """Returns when the claim's pods are deleted by force (L-93, L-189)."""
    return {names.TERMINATION_TIMESTAMP: timestamp(claim.deadline)} if claim.deadline is not None else {}


def claim_status(claim: NodeClaim, conditions: Sequence[Condition]) -> Document:
    """The status of a NodeClaim object (L-66, L-99); `conditions` as `projections.nodeclaim_status` finds them."""
    status: Document = {"conditions": [_condition(condition) for condition in conditions]}
    if claim.provider_id:
        status["providerID"] = claim.provider_id
    if claim.image:
        status["imageID"] = claim.image
    if claim.node:
        status["nodeName"] = claim.node
    if claim.capacity:
        status["capacity"] = quantities(claim.capacity)
    if claim.allocatable:
        status["allocatable"] = quantities(claim.allocatable)
    if claim.last_pod_event:
        status["lastPodEventTime"] = timestamp(claim.last_pod_event)
    return status


def stamped(status: Document, generation: int) -> Document:
    """Returns the status with the generation that its conditions are about (L-67)."""
    return {
        **status,
        "conditions": [{**condition, "observedGeneration": generation} for condition in status["conditions"]],
    }


def _condition(condition: Condition) -> Document:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": _shortened(condition.message),
        "lastTransitionTime": timestamp(condition.since),
    }


def _requirement(spec: RequirementSpec) -> Document:
    shown: Document = {"key": spec.key, "operator": spec.operator}
    if spec.values:
        shown["values"] = list(spec.values)
    if spec.min_values is not None:
        shown["minValues"] = spec.min_values
    return shown


def taint_document(taint: Taint) -> Document:
    shown = {"key": taint.key, "effect": taint.effect}
    return {**shown, "value": taint.value} if taint.value else shown


def quantities(resources: Resources) -> dict[str, str]:
    """Formats amounts as Kubernetes does: cpu in cores or milli-CPU, binary multiples with their suffix."""
    return {name: _quantity(name, amount) for name, amount in resources.items()}


def _quantity(name: str, amount: int) -> str:
    if name == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    for suffix, unit in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if amount and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)


def duration(milliseconds: int | None) -> str:
    """Formats a Go duration; None is Never."""
    if milliseconds is None:
        return "Never"
    seconds, rest = divmod(milliseconds, 1000)
    hours, left = divmod(seconds, 3600)
    minutes, left = divmod(left, 60)
    parts = [f"{amount}{unit}" for amount, unit in ((hours, "h"), (minutes, "m"), (left, "s"), (rest, "ms")) if amount]
    return "".join(parts) or "0s"


def timestamp(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition_document(condition: Condition, generation: int) -> dict[str, Any]:
    """A condition as objects have it. `generation` is that of the object that was looked at (L-67)."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason or condition.type,
        "message": _shortened(condition.message),
        "lastTransitionTime": timestamp(condition.since),
        "observedGeneration": generation,
    }


def _shortened(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
