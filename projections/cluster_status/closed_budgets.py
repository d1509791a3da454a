"""Which nodes stay for disruption budgets that are not used up, but allow no node at all: with `nodes: 0`, say, in a
window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kerf.engine.disruption.budgets import allowance
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.state.state import State


def held_by_closed_budgets(held: Iterable[NodeClaim], state: State, now: int) -> set[str]:
    """Return the names of those of these claims, which disruption budgets hold, whose budgets allow none."""
    claims, pools = state.facts.claims, state.facts.pools
    totals = Counter(claim.node_pool for claim in claims.values())
    asked = {claim.name: (claim.node_pool, _why(claim)) for claim in held if claim.node_pool in pools}
    closed = {(pool, why) for pool, why in asked.values() if not allowance(pools[pool], why, totals[pool], now).nodes}
    return {name for name, about in asked.items() if about in closed}


def _why(claim: NodeClaim) -> DisruptionReason:
    return DisruptionReason.DRIFTED if claim.drifted_since else DisruptionReason.UNDERUTILIZED
