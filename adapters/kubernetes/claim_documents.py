"""A NodeClaim object as karpenter.sh/v1 has it, from the aggregate that it shows (L-41…L-46, L-139…L-143)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kerf.engine.disruption.drift import CONDITION
from kerf.engine.model import labels as names
from kerf.engine.model.pods import Resources, Taint
from kerf.engine.model.pools import RequirementSpec
from kerf.engine.nodeclaim.claim import NodeClaim

Document = dict[str, Any]
WAITING = "AwaitingReconciliation"


def claim_document(claim: NodeClaim, pool_uid: str) -> Document:
    """All but the status. Without a pool it has no owner."""
    metadata: Document = {
        "name": claim.name,
        "labels": dict(claim.labels),
        "annotations": dict(claim.annotations),
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
        "requirements": [_requirement(each) for each in claim.requirements],
        "resources": {"requests": quantities(claim.requests)},
        "expireAfter": duration(claim.expire_after),
    }
    if claim.taints:
        spec["taints"] = [taint_document(each) for each in claim.taints]
    if claim.startup_taints:
        spec["startupTaints"] = [taint_document(each) for each in claim.startup_taints]
    if claim.termination_grace_period is not None:
        spec["terminationGracePeriod"] = duration(claim.termination_grace_period)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec}


def claim_status(claim: NodeClaim) -> Document:
    """L-66, L-99…: conditions as they follow from the times that the aggregate has."""
    status: Document = {"conditions": _conditions(claim)}
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


def _conditions(claim: NodeClaim) -> list[Document]:
    steps = (("Launched", claim.launched), ("Registered", claim.registered), ("Initialized", claim.initialized))
    shown = [_condition(kind, at, claim.created) for kind, at in steps]
    if all(at for _, at in steps):
        shown.append(_condition("Ready", claim.initialized, claim.created))
    else:
        waiting = [kind for kind, at in steps if not at]
        message = ", ".join(f"{kind}=Unknown" for kind in waiting)
        shown.append(_condition("Ready", 0, claim.created) | {"reason": "ReconcilingDependents", "message": message})
    if claim.drained:
        shown.append(_condition("Drained", claim.drained, claim.created))
    if claim.drift is not None:  # C-2: the reason is the message, too
        drift = CONDITION.get(claim.drift.code, claim.drift.code)
        drifted = _condition("Drifted", claim.drifted_since, claim.created)
        shown.append(drifted | {"reason": drift, "message": drift})
    if claim.initialized:
        shown.append(_consistent(claim))
    if claim.why and claim.tainted:
        going = _condition("DisruptionReason", claim.tainted, claim.created)
        shown.append(going | {"reason": _camel(claim.why), "message": claim.detail})
    return shown


def _consistent(claim: NodeClaim) -> Document:
    """L-76, L-241."""
    found = _condition("ConsistentStateFound", claim.inconsistent_changed or claim.initialized, claim.created)
    if not claim.inconsistent:
        return found
    message = f"the Node has less than 90% of the capacity expected of {', '.join(claim.inconsistent)}"
    return found | {"status": "False", "reason": "ConsistencyCheckFailed", "message": message}


def _condition(kind: str, at: int, created: int) -> Document:
    """True since `at`, or still unknown."""
    known = at > 0
    return {
        "type": kind,
        "status": "True" if known else "Unknown",
        "reason": kind if known else WAITING,
        "message": "" if known else "object is awaiting reconciliation",
        "lastTransitionTime": timestamp(at or created),
    }


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("-"))


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
    """As Kubernetes writes them: cpu in cores or milli-CPU, binary multiples with their suffix."""
    return {name: _quantity(name, amount) for name, amount in resources.items()}


def _quantity(name: str, amount: int) -> str:
    if name == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    for suffix, unit in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if amount and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)


def duration(milliseconds: int | None) -> str:
    """A Go duration; None is Never."""
    if milliseconds is None:
        return "Never"
    seconds, rest = divmod(milliseconds, 1000)
    hours, left = divmod(seconds, 3600)
    minutes, left = divmod(left, 60)
    parts = [f"{amount}{unit}" for amount, unit in ((hours, "h"), (minutes, "m"), (left, "s"), (rest, "ms")) if amount]
    return "".join(parts) or "0s"


def timestamp(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
