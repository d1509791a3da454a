"""What the disruption budgets leave for a search that chooses one command after the other (D-50, D-51)."""

from __future__ import annotations

from collections.abc import Container, Iterable

from kerf.engine.disruption.budgets import Ledger, Use, budget_usage, takes_nothing
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.eligibility import Candidate
from kerf.engine.model.disruption_reasons import DisruptionReason


class BudgetRoom:
    """With several `rounds` all commands together may take that many times as many nodes as the budgets let go at once;
    one command never takes more than may go at once."""

    def __init__(self, cluster: Cluster, rounds: int = 1) -> None:
        used, pools = budget_usage(cluster), [pool_input.pool for pool_input in cluster.pools]
        self._left = Ledger(pools, used, cluster.now, rounds)
        self._at_once = Ledger(pools, {name: Use(use.total) for name, use in used.items()}, cluster.now)
        self._counted = Ledger(pools, {name: use.without_one() for name, use in used.items()}, cluster.now)

    def copy(self) -> BudgetRoom:
        made = BudgetRoom.__new__(BudgetRoom)
        made._left, made._at_once, made._counted = self._left.copy(), self._at_once, self._counted
        return made

    def take(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            if not takes_nothing(candidate):
                self._left.take(candidate.pool.name)

    def is_full(self, pool: str) -> bool:
        """Whether no node of a NodePool may go any more."""
        return self._left.left(pool, DisruptionReason.UNDERUTILIZED) <= 0

    def for_any(self, candidates: Iterable[Candidate], settled: Container[str]) -> list[Candidate]:
        """The candidates that some command may still take. `settled`: nodes (by name) that none may."""
        return [
            candidate
            for candidate in candidates
            if candidate.name not in settled and not self.is_full(candidate.pool.name)
        ]

    def for_one(
        self, candidates: Iterable[Candidate], reason: DisruptionReason, settled: Container[str]
    ) -> list[Candidate]:
        """The first candidates, as many as one command may take together."""
        return self._first(candidates, reason, settled, (self._left, self._at_once))

    def for_all(self, candidates: Iterable[Candidate], reason: DisruptionReason) -> list[Candidate]:
        """The first candidates, as many as all commands may take together."""
        return self._first(candidates, reason, (), (self._left,))

    def _first(
        self,
        candidates: Iterable[Candidate],
        reason: DisruptionReason,
        settled: Container[str],
        ledgers: Iterable[Ledger],
    ) -> list[Candidate]:
        room: dict[str, int] = {}
        kept = []
        for candidate in candidates:
            pool = candidate.pool.name
            if takes_nothing(candidate):
                ledger = self._at_once if candidate.node.unused else self._counted
                if candidate.name not in settled and ledger.left(pool, reason):
                    kept.append(candidate)
                continue
            if pool not in room:
                room[pool] = min(ledger.left(pool, reason) for ledger in ledgers)
            if room[pool] > 0 and candidate.name not in settled:
                room[pool] -= 1
                kept.append(candidate)
        return kept
