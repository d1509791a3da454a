"""Among the plans that were found, the one that is cheapest when the cluster's scheduler has had its way.

A pod that the scheduler would find no place for waits for another pass and costs another node. So a plan that binds
whole comes before any other, as long as it costs no more than that. What a plan lacks is added to it: the pods that
would be left over get nodes of their own, and their old places become slack; or its nodes are changed as a set (see
`mending`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kerf.engine.scheduling.optimizer.candidates import TOLERANCE, Candidate, assembled
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.node_sets.node_set_search import NodeSetSearch
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet
from kerf.engine.scheduling.optimizer.search.search import Search
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem

MAX_CANDIDATES_RATED = 4
"""How many of the cheapest plans are rated, beside the first one."""
MAX_PRICE_FACTOR, MAX_PRICE_MORE = 1.25, 0.5
"""By what factor, or by how many USD per hour, one that binds whole may be dearer than a plan with the nodes for what
that one leaves over: no pod has to wait for a further pass then."""
PRICE_UNCERTAINTY = 1.02
"""What later nodes will cost is not known better than so."""
MAX_ROUNDS = 4
"""How often a plan gets further nodes for what is left over."""


def max_bindable_price(first: float, cost: float) -> float:
    """What a plan may cost that binds whole, where the first plan costs so much, and the best that does not `cost` with
    the nodes for what it leaves over (all USD per hour)."""
    return max(first, cost * MAX_PRICE_FACTOR, cost + MAX_PRICE_MORE)


class RatedCandidate(Struct, frozen=True):
    """`left`: the pods (uids) that the scheduler finds no place for, by the first of its habits by which there are some
    (`passed`: how many come before); `later` is what nodes for them cost."""

    candidate: Candidate
    left: tuple[str, ...]
    later: float
    passed: int

    @property
    def cost(self) -> float:
        """USD per hour, with what the pods that are left over cost later."""
        return self.candidate.price + self.later

    @property
    def rank(self) -> tuple[float, int, int]:
        return round(self.candidate.price / TOLERANCE) * TOLERANCE, len(self.left), len(self.candidate.parts)


class BindableChoice:
    """The choice for one problem."""

    def __init__(self, problem: Problem, first: Plan, search: Search, effort: Effort) -> None:
        self._problem, self._first, self._search, self._effort = problem, first, search, effort
        self._mending = NodeSetSearch(search.fleets, len(problem.nodes), effort)
        self._price = search.found[0].price
        self._short = False  # of effort

    def best(self) -> RatedCandidate | None:
        """The best of the plans found so far, or of those made of them; None if the effort does not suffice to rate
        the cheapest."""
        cheapest = sorted(self._search.found, key=lambda each: (each.price, len(each.parts)))
        if self._problem.settings.nominations:
            return self._followed([each for each in cheapest if each.price < cheapest[0].price + TOLERANCE])
        found: list[RatedCandidate] = []
        for each in [*cheapest[:MAX_CANDIDATES_RATED], self._search.found[0]]:
            below = min((e.candidate.price for e in found if not e.left), default=self._price + 2 * TOLERANCE)
            found += self._eased(each, below)
            if self._short:
                break  # dearer plans are no better for being known better
        best = self._choice(found)
        if best is None:
            return None
        found += self._mended(best) if best.left else self._leaner(best)
        return self._choice(found)

    def _choice(self, found: Sequence[RatedCandidate]) -> RatedCandidate | None:
        """The cheapest that binds whole; if none does, the cheapest of those that cost least in the end, as far as that
        can be told, and no more than the first plan."""
        whole = [each for each in found if not each.left]
        rest = [each for each in found if each.candidate.price < self._price + TOLERANCE]
        least = min((each.cost for each in rest), default=0.0)
        good = whole or [each for each in rest if each.cost <= least * PRICE_UNCERTAINTY]
        return min(good, key=lambda each: each.rank, default=None)

    def _followed(self, cheapest: list[Candidate]) -> RatedCandidate | None:
        """For a scheduler that is told the plan: nothing is paid for plans that it would carry out without."""
        rated = [found for each in cheapest[:MAX_CANDIDATES_RATED] if (found := self._rated(each)) is not None]
        return self._choice(rated)

    def _eased(self, candidate: Candidate | None, below: float) -> Iterator[RatedCandidate]:
        """The candidate, and what becomes of it with nodes for what is left over, while that costs less."""
        for _ in range(MAX_ROUNDS):
            if candidate is None or candidate.price >= below:
                return
            rated = self._rated(candidate)
            if rated is None:
                self._short = True
                return
            yield rated
            candidate = self._search.eased(rated.candidate, rated.left, below) if rated.left else None

    def _mended(self, rated: RatedCandidate) -> Iterator[RatedCandidate]:
        """The nodes of the cheapest plan, of the first one, and those that would be launched if the scheduler went
        before, made to bind whole; a cheaper one is looked for while it costs more than this plan does in the end."""
        below = max_bindable_price(self._price, rated.cost) + 2 * TOLERANCE
        if self._in_vain(rated):
            return
        fleets = list(self._fleets(rated.candidate))
        for each in fleets:
            again = None if each.bindings.unbound else self._planned(self._mending.leaner(each))
            if again is not None and again.candidate.price < below:
                below = below if again.left else again.candidate.price
                yield again
        trails = [self._mending.trail(each, below) for each in fleets]
        kept = max((self._search.cost_of_fleet(each) for each in fleets), default=0)
        while below > rated.cost and self._effort.take(kept):
            whole = self._mending.whole(trails, below)
            lean = self._mending.leaner(whole) if whole is not None else None
            self._effort.give(kept)
            if lean is None:
                return
            again = self._planned(lean)
            if again is not None:
                below = below if again.left else again.candidate.price
                yield again

    def _in_vain(self, rated: RatedCandidate) -> bool:
        """Whether a pod is left over that no node can take, so that no set of nodes binds whole: its Local volume is on
        a node that is gone, or it asks for a label of clouds that no instance type has."""
        berths = self._search.fleets.berths(each.claim for each in rated.candidate.parts)
        return any(self._search.fleets.nowhere(uid, dict.fromkeys(berths)) for uid in rated.left)

    def _planned(self, fleet: NodeSet) -> RatedCandidate | None:
        made = self._search.of_fleet(fleet)
        return self._rated(made) if made is not None else None

    def _leaner(self, rated: RatedCandidate) -> Iterator[RatedCandidate]:
        """A plan that binds whole without what it does not need."""
        uids = assembled(rated.candidate, self._first).placed
        fleet = self._mending.judged(self._search.fleets.berths(each.claim for each in rated.candidate.parts), uids)
        lean = self._mending.leaner(fleet) if fleet is not None and not fleet.bindings.unbound else None
        if lean is not None and lean.price < rated.candidate.price - TOLERANCE:
            again = self._planned(lean)
            if again is not None:
                yield again

    def _fleets(self, candidate: Candidate) -> Iterator[NodeSet]:
        fleets, uids = self._search.fleets, self._first.placed
        for each in (candidate, self._search.found[0]):
            found = self._mending.judged(fleets.berths(part.claim for part in each.parts), uids)
            if found is not None:
                yield found
        before = self._mending.judged((), uids) if self._problem.nodes else None
        berths = self._mending.further(before) if before is not None else None
        found = self._mending.judged(tuple(berths), uids) if berths is not None else None
        if found is not None:
            yield found

    def _rated(self, candidate: Candidate) -> RatedCandidate | None:
        """None if the effort is spent."""
        made = assembled(candidate, self._first)
        fleet = self._mending.judged(self._search.fleets.berths(made.claims), made.placed)
        if fleet is None:
            return None
        further = self._mending.further(fleet) if fleet.bindings.unbound else []
        if further is None:
            later = self._planned_price(candidate, frozenset(fleet.bindings.unbound))
        else:
            later = math.fsum(each.claim.price for each in further)
        return RatedCandidate(candidate, fleet.bindings.unbound, later, fleet.passed)

    def _planned_price(self, candidate: Candidate, left: frozenset[str]) -> float:
        """Where it cannot be said what nodes would be launched for pods later: those for which they were planned."""
        return math.fsum(each.claim.price for each in candidate.parts if not left.isdisjoint(each.claim.pods))
