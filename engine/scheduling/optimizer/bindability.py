"""The choice among the candidates: the cheapest one that binds whole.

A pod that kube-scheduler finds no node for waits for another pass and costs another node. So a plan that binds whole
comes before any other, as long as it costs no more than that. A candidate that leaves pods unbound is improved in two
ways: its unbound pods get nodes of their own (and their planned places stay free), or its nodes are changed as a set
(`node_sets.node_set_search`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kerf.engine.scheduling.optimizer.alternative_plans import TOLERANCE, AlternativePlan, assembled
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.node_sets.node_set_search import NodeSetSearch
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet
from kerf.engine.scheduling.optimizer.search.search import Search
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem

MAX_CANDIDATES_RATED = 4
"""How many of the cheapest candidates are rated, besides the first plan."""
MAX_PRICE_FACTOR, MAX_PRICE_MORE = 1.25, 0.5
"""How much dearer a plan that binds whole may be than one that does not, with the nodes for its unbound pods: by this
factor, or by so many USD per hour. No pod has to wait for another pass then."""
PRICE_UNCERTAINTY = 1.02
"""Prices in the end that differ by less than this factor are equal, because later nodes are only estimated."""
MAX_ROUNDS = 4
"""How often a candidate gets further nodes for its unbound pods."""


def max_bindable_price(first: float, cost: float) -> float:
    """What a plan that binds whole may cost, in USD per hour. `first`: the price of the first plan; `cost`: the best
    plan that does not bind whole, with the nodes for its unbound pods."""
    return max(first, cost * MAX_PRICE_FACTOR, cost + MAX_PRICE_MORE)


class RatedCandidate(Struct, frozen=True):
    """A candidate with its rating: the pods (uids) that the first variant of kube-scheduler leaves `unbound` that does
    so, how many variants pass before it, and the `later_price` of nodes for these pods."""

    candidate: AlternativePlan
    unbound: tuple[str, ...]
    later_price: float
    variants_passed: int

    @property
    def cost(self) -> float:
        """USD per hour, with the later nodes for unbound pods."""
        return self.candidate.price + self.later_price

    @property
    def rank(self) -> tuple[float, int, int]:
        """Lower is better: the price, then unbound pods, then nodes."""
        return round(self.candidate.price / TOLERANCE) * TOLERANCE, len(self.unbound), len(self.candidate.claims)


class BindableChoice:
    """The choice for one problem, after the search for cheaper candidates, within an effort."""

    def __init__(self, problem: Problem, first: Plan, search: Search, effort: Effort) -> None:
        self._problem, self._first, self._search, self._effort = problem, first, search, effort
        self._node_set_search = NodeSetSearch(search.node_sets, len(problem.nodes), effort, search.keeps_spreads)
        self._first_price = search.candidates[0].price
        self._effort_spent = False

    def best(self) -> RatedCandidate | None:
        """The best of the candidates and of those made from them; None if the effort is too little to rate the
        cheapest."""
        cheapest = sorted(self._search.candidates, key=lambda each: (each.price, len(each.claims)))
        if self._problem.settings.nominations:
            return self._best_nominated([each for each in cheapest if each.price < cheapest[0].price + TOLERANCE])
        rated: list[RatedCandidate] = []
        for candidate in [*cheapest[:MAX_CANDIDATES_RATED], self._search.candidates[0]]:
            below = min((e.candidate.price for e in rated if not e.unbound), default=self._first_price + 2 * TOLERANCE)
            rated += self._rated_with_further_nodes(candidate, below)
            if self._effort_spent:
                break  # to rate dearer candidates would not help
        best = self._choose(rated)
        if best is None:
            return None
        rated += self._made_whole(best) if best.unbound else self._leaner(best)
        return self._choose(rated)

    def _choose(self, rated: Sequence[RatedCandidate]) -> RatedCandidate | None:
        """The cheapest that binds whole. If none does: of those that cost least in the end, as far as that is known,
        and no more than the first plan, the cheapest now."""
        whole = [each for each in rated if not each.unbound]
        affordable = [each for each in rated if each.candidate.price < self._first_price + TOLERANCE]
        least = min((each.cost for each in affordable), default=0.0)
        good = whole or [each for each in affordable if each.cost <= least * PRICE_UNCERTAINTY]
        return min(good, key=lambda each: each.rank, default=None)

    def _best_nominated(self, cheapest: list[AlternativePlan]) -> RatedCandidate | None:
        """The choice where pods are told their nodes: kube-scheduler follows the plan, so nothing more is paid for."""
        rated = [each for candidate in cheapest[:MAX_CANDIDATES_RATED] if (each := self._rate(candidate)) is not None]
        return self._choose(rated)

    def _rated_with_further_nodes(self, candidate: AlternativePlan | None, below: float) -> Iterator[RatedCandidate]:
        """The candidate, then what it becomes with further nodes for its unbound pods, while that costs less than
        `below`."""
        for _ in range(MAX_ROUNDS):
            if candidate is None or candidate.price >= below:
                return
            rated = self._rate(candidate)
            if rated is None:
                self._effort_spent = True
                return
            yield rated
            candidate = (
                self._search.with_further_nodes(rated.candidate, rated.unbound, below) if rated.unbound else None
            )

    def _made_whole(self, rated: RatedCandidate) -> Iterator[RatedCandidate]:
        """Candidates made from node sets that bind every pod. The search begins with the nodes of this candidate, of
        the first plan, and of what would be launched if kube-scheduler went first. It looks for cheaper ones as long as
        they cost more than this candidate does in the end."""
        below = max_bindable_price(self._first_price, rated.cost) + 2 * TOLERANCE
        if self._cannot_be_whole(rated):
            return
        starts = list(self._starting_sets(rated.candidate))
        for node_set in starts:
            whole = not node_set.bindings.unbound
            again = self._planned(self._node_set_search.leaner(node_set)) if whole else None
            if again is not None and again.candidate.price < below:
                below = below if again.unbound else again.candidate.price
                yield again
        trails = [self._node_set_search.trail(start, below) for start in starts]
        reserved = max((self._search.touches_of_candidate(start) for start in starts), default=0)
        while below > rated.cost and self._effort.take(reserved):
            whole_set = self._node_set_search.whole(trails, below)
            lean = self._node_set_search.leaner(whole_set) if whole_set is not None else None
            self._effort.give(reserved)
            if lean is None:
                return
            again = self._planned(lean)
            if again is not None:
                below = below if again.unbound else again.candidate.price
                yield again

    def _cannot_be_whole(self, rated: RatedCandidate) -> bool:
        """Whether an unbound pod fits on no node at all, so that no set of nodes binds whole. For example, its local
        volume is on a node that is gone, or it asks for a label that no instance type has."""
        nodes = self._search.node_sets.nodes_of(claim.claim for claim in rated.candidate.claims)
        return any(self._search.node_sets.fits_nowhere(uid, dict.fromkeys(nodes)) for uid in rated.unbound)

    def _planned(self, node_set: NodeSet) -> RatedCandidate | None:
        candidate = self._search.candidate_of(node_set)
        return self._rate(candidate) if candidate is not None else None

    def _leaner(self, rated: RatedCandidate) -> Iterator[RatedCandidate]:
        """A candidate that binds whole without the nodes that it does not need."""
        uids = assembled(rated.candidate, self._first).placed
        nodes = self._search.node_sets.nodes_of(claim.claim for claim in rated.candidate.claims)
        node_set = self._node_set_search.evaluate(nodes, uids)
        whole = node_set is not None and not node_set.bindings.unbound
        lean = self._node_set_search.leaner(node_set) if node_set is not None and whole else None
        if lean is not None and lean.price < rated.candidate.price - TOLERANCE:
            again = self._planned(lean)
            if again is not None:
                yield again

    def _starting_sets(self, candidate: AlternativePlan) -> Iterator[NodeSet]:
        """The nodes of the candidate, of the first plan, and those that the planner launches for what kube-scheduler
        leaves unbound on the existing nodes."""
        node_sets, uids = self._search.node_sets, self._first.placed
        for each in (candidate, self._search.candidates[0]):
            node_set = self._node_set_search.evaluate(node_sets.nodes_of(part.claim for part in each.claims), uids)
            if node_set is not None:
                yield node_set
        before = self._node_set_search.evaluate((), uids) if self._problem.nodes else None
        nodes = self._node_set_search.further(before) if before is not None else None
        node_set = self._node_set_search.evaluate(tuple(nodes), uids) if nodes is not None else None
        if node_set is not None:
            yield node_set

    def _rate(self, candidate: AlternativePlan) -> RatedCandidate | None:
        """None if the effort is spent."""
        plan = assembled(candidate, self._first)
        node_set = self._node_set_search.evaluate(self._search.node_sets.nodes_of(plan.claims), plan.placed)
        if node_set is None:
            return None
        unbound = node_set.bindings.unbound
        further = self._node_set_search.further(node_set) if unbound else []
        if further is None:
            later_price = self._price_of_planned_nodes(candidate, frozenset(unbound))
        else:
            later_price = math.fsum(each.claim.price for each in further)
        return RatedCandidate(candidate, unbound, later_price, node_set.variants_passed)

    def _price_of_planned_nodes(self, candidate: AlternativePlan, unbound: frozenset[str]) -> float:
        """Stands for the price of later nodes where the planner does not say: the nodes that these pods (uids) were
        planned for."""
        return math.fsum(claim.claim.price for claim in candidate.claims if not unbound.isdisjoint(claim.claim.pods))
