"""Make NodeClaim objects for the virtual cluster. They are what is left of kerf's claims when its record is lost."""

from __future__ import annotations

from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject
from kerf.engine.nodeclaim.claim import NodeClaim


def claim_object(claim: NodeClaim, deleting: int) -> NodeClaimObject:
    """Return the object of a claim (L-41 to L-46). It shows as deleted once the drain has begun: before, a candidate
    may yet stay (D-116)."""
    steps = (("Launched", claim.launched), ("Registered", claim.registered), ("Initialized", claim.initialized))
    return NodeClaimObject(
        name=claim.name,
        node_class=claim.node_class,
        uid=f"uid-{claim.name}",
        labels=claim.labels,
        annotations=claim.annotations,
        requirements=claim.requirements,
        taints=claim.taints,
        startup_taints=claim.startup_taints,
        requests=claim.requests,
        expire_after=claim.expire_after,
        termination_grace_period=claim.termination_grace_period,
        provider_id=claim.provider_id,
        node=claim.node,
        image=claim.image,
        capacity=claim.capacity,
        allocatable=claim.allocatable,
        conditions=tuple(Condition(kind, "True", kind, since=at) for kind, at in steps if at),
        last_pod_event=claim.last_pod_event,
        created=claim.created,
        deleting=deleting or claim.drain_started,
    )
