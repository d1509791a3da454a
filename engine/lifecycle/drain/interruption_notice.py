"""Interrupted nodes: how long their pods may stay, so that a new node is there when they leave.

Karpenter evicts them at once, and each pod is down while its new node starts. Here a pod leaves when the claim that the
plan puts it on is in service. At the latest it leaves when the rest of the interruption notice is just enough for it to
end, with a margin for disruption budgets and slow ends.
"""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Pod, is_reschedulable
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.state.state import State

NOTICE_OF_KIND = {"spot_interrupted": 120_000}
"""How long (ms) an instance lives after its warning was sent, by the kind of message (A-346). Others give no time."""
NOTICE_MARGIN = 60_000
"""Milliseconds that are left for budgets and pods that end slowly."""
DEFAULT_GRACE = 30
"""The API's default terminationGracePeriodSeconds."""


def stays_until(claim: NodeClaim, pod: Pod, state: State) -> int:
    """Until when the pod stays because its next node is not there (ms since the epoch); 0 if it need not wait. While
    the clocks differ nothing tells what is left of the notice, which the cloud has timed: no pod waits (ADR 9)."""
    notice = NOTICE_OF_KIND.get(claim.interruption, 0) if not state.facts.clocks_differ else 0
    if not notice or not state.facts.settings.keep_until_replaced or not is_reschedulable(pod):
        return 0
    if _is_up(state.facts.targets.get(pod.uid, ""), state):
        return 0
    grace = state.indexes.blobs.shape(pod.shape).grace
    return (
        claim.interrupted
        + notice
        - max(NOTICE_MARGIN, (DEFAULT_GRACE if grace is None else grace) * 1000 + NOTICE_MARGIN // 4)
    )


def _is_up(target: str, state: State) -> bool:
    """Whether the claim, or the Node that kerf does not manage, can take the pod now."""
    claim = state.facts.claims.get(target)
    return claim.state == INITIALIZED if claim is not None else target in state.facts.nodes
