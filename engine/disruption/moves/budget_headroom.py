"""Whether the disruption budgets have room for a proposed move now (D-51).

More moves are proposed than the budgets let start at once. Their validation delay runs while they wait, so that the
next move starts as soon as nodes before it have gone. Otherwise each share of a budget would wait for the delay anew.
"""

from __future__ import annotations

from kerf.engine.disruption.budgets import Use, remaining
from kerf.engine.model.disruption_reasons import DisruptionReason, budget_reason
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.decisions import Move
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.pods.on_node import is_unused
from kerf.engine.state.state import State

ROUNDS_AHEAD = 8
"""How many times as many nodes are proposed as the budgets let go at once."""
MAX_WAIT = 120_000
"""How long a proposed move waits for room after its validation delay, in ms. Then it is validated, and withdrawn if
there still is none."""


class BudgetHeadroom:
    """What the budgets leave at the latest entry, counted from the claims alone (D-49, D-50)."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._uses: dict[str, Use] | None = None
        self._left: dict[tuple[str, DisruptionReason, Use], int] = {}

    def allows(self, move: Move) -> bool:
        """Whether all nodes of a move may go now, or need not wait: their NodePool is gone, they take nothing from it,
        or more than its budgets ever let go at once."""
        facts = self._state.facts
        reason = budget_reason(move.why)
        for name, count in self._by_pool(move).items():
            pool, use = facts.pools.get(name), self._used().get(name, Use())
            if pool is not None and self._leaves(pool, reason, use) < count:
                return self._leaves(pool, reason, Use(use.total)) < count
        return True

    def _leaves(self, pool: NodePool, reason: DisruptionReason, use: Use) -> int:
        key = pool.name, reason, use
        if key not in self._left:
            self._left[key] = remaining(pool, reason, use, self._state.facts.at)
        return self._left[key]

    def take(self, move: Move) -> None:
        """Counts a move that starts."""
        for name, count in self._by_pool(move).items():
            use = self._used().get(name, Use())
            self._used()[name] = Use(use.total, use.consuming + count, use.lasting)

    def _by_pool(self, move: Move) -> dict[str, int]:
        """How many nodes of each NodePool the move takes from it."""
        nodes: dict[str, int] = {}
        for name in move.claims:
            claim = self._state.facts.claims.get(name)
            if claim is not None and not (move.why == DisruptionReason.EMPTY and self._takes_nothing(claim)):
                nodes[claim.node_pool] = nodes.get(claim.node_pool, 0) + 1
        return nodes

    def _takes_nothing(self, claim: NodeClaim) -> bool:
        node = node_of(claim, self._state)
        return node is None or not node.ready or is_unused(claim, self._state)

    def _used(self) -> dict[str, Use]:
        """Counted once for each position, for it is asked for several times between two entries."""
        if self._uses is None:
            facts, indexes = self._state.facts, self._state.indexes
            if indexes.budget_uses[0] != facts.position:
                indexes.budget_uses = facts.position, budget_use(self._state)
            self._uses = dict(indexes.budget_uses[1])
        return self._uses


def budget_use(state: State) -> dict[str, Use]:
    """What counts for disruption budgets, by NodePool: initialized nodes whose instance is not being ended. Those that
    go, unless they are unused, or are not ready consume (D-49, D-50)."""
    uses: dict[str, Use] = {}
    for claim in state.facts.claims.values():
        if claim.initialized and not claim.is_ending:
            use = uses.get(claim.node_pool, Use())
            node = node_of(claim, state)
            goes = claim.state in GOING and not is_unused(claim, state)
            uses[claim.node_pool] = use.with_node(goes=goes, ready=node is not None and node.ready)
    return uses
