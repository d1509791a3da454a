"""When a node may be called initialized (L-169…L-174), and which taints do not count before that (L-101, L-265)."""

from __future__ import annotations

from kerf.engine.model.labels import UNREGISTERED_TAINT
from kerf.engine.model.nodes import Node
from kerf.engine.model.pods import Taint
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim

_EPHEMERAL: frozenset[tuple[str, str]] = frozenset(
    [
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (UNREGISTERED_TAINT, "NoExecute"),
    ]
)


def is_ephemeral(taint: Taint) -> bool:
    """L-101: a taint that goes by itself while a node starts."""
    return (taint.key, taint.effect) in _EPHEMERAL or taint.key.startswith("readiness.k8s.io/")


def counting_taints(taints: tuple[Taint, ...], startup: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """S-72: the taints of an uninitialized node that pods must tolerate."""
    return tuple(t for t in taints if not is_ephemeral(t) and not any(t.same(s) for s in startup))


def not_initialized_because(claim: NodeClaim, node: Node) -> Reason | None:
    """The first failing check of L-171…L-174, None when all pass."""
    if not node.ready:
        return Reason("node-not-ready", {"node": node.name})
    for taint in node.taints:
        if any(taint.same(startup) for startup in claim.startup_taints):
            return Reason("startup-taints-exist", {"taint": _text(taint)})
    for taint in node.taints:
        if is_ephemeral(taint):
            return Reason("known-ephemeral-taints-exist", {"taint": _text(taint)})
    for resource, amount in sorted(claim.requests.items()):
        if amount and not node.allocatable.get(resource):
            return Reason("resource-not-registered", {"resource": resource})
    return None


def _text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
