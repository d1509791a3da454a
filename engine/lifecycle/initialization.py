"""When a node may be called initialized (L-169…L-174). `nodeclaim.ephemeral_taints` lists the taints that delay it."""

from __future__ import annotations

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.ephemeral_taints import is_ephemeral


def not_initialized_because(claim: NodeClaim, node: Node) -> Reason | None:
    """The first failing check of L-171…L-174, None when all pass."""
    if not node.ready:
        return Reason.of(LifecycleCode.NODE_NOT_READY, node=node.name)
    for taint in node.taints:
        if any(taint.same(startup) for startup in claim.startup_taints):
            return Reason.of(LifecycleCode.STARTUP_TAINTS_EXIST, taint=_text(taint))
    for taint in node.taints:
        if is_ephemeral(taint):
            return Reason.of(LifecycleCode.KNOWN_EPHEMERAL_TAINTS_EXIST, taint=_text(taint))
    for resource, amount in sorted(claim.requests.items()):
        if amount and not node.allocatable.get(resource):
            return Reason.of(LifecycleCode.RESOURCE_NOT_REGISTERED, resource=resource)
    return None


def _text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
