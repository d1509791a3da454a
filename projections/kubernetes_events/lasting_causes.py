"""Which causes of Events last, by the state: why nodes stay, and what drains wait for.

The API server forgets an Event after an hour. What still holds is told again.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.disruption.cluster_from_state import cluster_when_moves_start
from kerf.engine.disruption.eligibility import judge_nodes
from kerf.engine.lifecycle.drain.nodes_without_claim import deleted_nodes_without_claim
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import DRAINING, GOING, INITIALIZED
from kerf.engine.record.decisions import Verdict
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.drain_events import DrainEvents
from kerf.projections.kubernetes_events.event import KubernetesEvent
from kerf.projections.kubernetes_events.events_by_code import BLOCKS_ANY_DISRUPTION


def lasting_verdicts(state: State, kept: Iterable[Verdict], now: int) -> list[Verdict]:
    """Return why nodes stay at `now` (ms since the epoch). What blocks any disruption is looked up: another pod may
    block by now. For the rest the `kept` verdicts hold until there are others."""
    claims = state.facts.claims
    in_service = {name: None for name, claim in claims.items() if claim.state == INITIALIZED}
    blocked = {name: None for name in in_service if claims[name].verdict in BLOCKS_ANY_DISRUPTION}
    verdicts = [verdict for verdict in kept if verdict.claim in in_service and verdict.claim not in blocked]
    if not blocked:
        return verdicts
    judged = judge_nodes(cluster_when_moves_start(state, now), claims=blocked).judged
    found = [(node.place.claim, why) for node, why in judged if isinstance(why, Reason)]
    return verdicts + [Verdict(claim, "", "keep", why) for claim, why in found]


def lasting_drains(state: State, drain: DrainEvents, now: int) -> list[KubernetesEvent]:
    """Return what nodes on their way out wait for, and until when."""
    events: list[KubernetesEvent] = []
    for name, claim in state.facts.claims.items():
        if claim.state in GOING:
            events += drain.deadline(name, claim.deadline)
        if claim.state == DRAINING:  # pods that came to a drained node leave before its volumes (D-146)
            events += drain.waiting(claim.node, now) or (drain.volumes(name) if _awaits_volumes(claim) else [])
    return events + [event for node in deleted_nodes_without_claim(state) for event in drain.waiting(node.name, now)]


def _awaits_volumes(claim: NodeClaim) -> bool:
    return bool(claim.drained) and not claim.detached
