"""Pods of a node that is interrupted keep running until their next place is up, as long as the notice allows.

Where the reference evicts at once, a pod is down for as long as its replacement takes to start. Here it leaves when the
claim that the plan put it on is in service, or when as much of the notice is left as it needs to end, and a margin for
budgets and slow ends: whichever comes first.
"""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Pod, is_reschedulable
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.state.state import State

NOTICE = {"spot_interrupted": 120_000}
"""How long an instance lives after its warning was sent, by the message's kind (A-346); others give no time."""
MARGIN = 60_000
DEFAULT_GRACE = 30  # seconds, as the API has it


def stays_until(claim: NodeClaim, pod: Pod, state: State) -> int:
    """Until when the pod stays for want of its next place (ms since the epoch); 0 if nothing keeps it."""
    notice = NOTICE.get(claim.interruption, 0)
    if not notice or not state.facts.settings.keep_until_replaced or not is_reschedulable(pod):
        return 0
    if _is_up(state.facts.targets.get(pod.uid, ""), state):
        return 0
    grace = state.indexes.blobs.shape(pod.shape).grace
    return claim.interrupted + notice - max(MARGIN, (DEFAULT_GRACE if grace is None else grace) * 1000 + MARGIN // 4)


def _is_up(target: str, state: State) -> bool:
    """Whether a claim, or a Node that kerf does not manage, is there to take the pod."""
    claim = state.facts.claims.get(target)
    return claim.state == INITIALIZED if claim is not None else target in state.facts.nodes
