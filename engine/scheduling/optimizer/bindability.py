"""The choice among the candidates: the cheapest one that binds whole.

A pod that kube-scheduler finds no node for waits for another pass and costs another node. So a plan that binds whole
comes before any other, as long as it costs no more than the other with these nodes. A candidate that leaves pods
unbound is improved in two ways: its unbound pods get nodes of their own (and their planned places stay free), or its
nodes are changed as a set (`node_sets.node_set_search`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kerf.engine.scheduling.kube_scheduler.scheduler import new_node_name
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.alternative_plans import TOLERANCE, AlternativePlan, assembled
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.node_sets.node_set_search import NodeSetSearch
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet
from kerf.engine.scheduling.optimizer.search.search import Search
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.pods.told_at_once import ToldAtOnce, labels_of_all
from kerf.engine.scheduling.problem.problem import Problem

MAX_CANDIDATES_RATED = 4
"""How many of the cheapest candidates are rated, besides the first plan."""
PRICE_UNCERTAINTY = 1.02
"""Prices in the end that differ by less than this factor are equal, because later nodes are only estimated."""
MAX_ROUNDS = 4
"""How often a candidate gets further nodes for its unbound pods."""


class RatedCandidate(Struct, frozen=True):
    """A candidate with its rating: the pods (uids) that the first variant of kube-scheduler leaves `unbound` that does
    so, and what the nodes for them will cost (`NodeSetSearch.later_price`). Where pods are told their nodes, the pods
    that are left over since they cannot be told at once; nothing is launched for these."""

    candidate: AlternativePlan
    unbound: tuple[str, ...]
    later_price: float

    @property
    def cost(self) -> float:
        """USD per hour, with the later nodes for unbound pods."""
        return self.candidate.price + self.later_price

    @property
    def rank(self) -> tuple[float, int, int]:
        """Lower is better: the price, then unbound pods, then nodes."""
        return round(self.candidate.price / TOLERANCE) * TOLERANCE, len(self.unbound), len(self.candidate.claims)


class BindableChoice:
    """The choice for one problem, after the search for cheaper candidates, within an effort. Of that so many touches
    at most go to the search for node sets."""

    def __init__(
        self, problem: Problem, first: Plan, search: Search, effort: Effort, touches_for_node_sets: int
    ) -> None:
        self._touches_for_node_sets = touches_for_node_sets
        self._problem, self._first, self._search, self._effort = problem, first, search, effort
        self._node_sets = search.node_sets
        self._node_set_search = NodeSetSearch(search.node_sets, effort, search.keeps_spreads)
        self._first_price = self._below = search.candidates[0].price
        self._effort_spent = False

    def best(self) -> RatedCandidate | None:
        """The best of the candidates and of those made from them; None if the effort is too little to rate the
        cheapest."""
        cheapest = sorted(self._search.candidates, key=lambda plan: (plan.price, len(plan.claims)))
        if self._problem.settings.nominations:
            # kube-scheduler follows the plan, so nothing more is paid for
            equal = [plan for plan in cheapest if plan.price < cheapest[0].price + TOLERANCE][:MAX_CANDIDATES_RATED]
            return self._choose([known for plan in equal if (known := self._rate(plan)) is not None])
        rated: list[RatedCandidate] = []
        for candidate in [*cheapest[:MAX_CANDIDATES_RATED], self._search.candidates[0]]:
            below = min((known.cost for known in rated), default=self._first_price) * PRICE_UNCERTAINTY
            rated += self._rated_with_further_nodes(candidate, below)
            if self._effort_spent:
                break  # to rate dearer candidates would not help
        best = self._choose(rated)
        if best is None:
            return None
        self._effort.keep(self._touches_for_node_sets)
        rated += self._made_whole(min(rated, key=lambda known: known.rank), best)
        return self._choose(rated)

    def _choose(self, rated: Sequence[RatedCandidate]) -> RatedCandidate | None:
        """Of those that cost least in the end, as far as that is known, the cheapest that binds whole; if none does,
        the cheapest now. Only one that binds whole may cost more than the first plan."""
        most = self._first_price + TOLERANCE
        affordable = [known for known in rated if not known.unbound or known.candidate.price < most]
        least = min((known.cost for known in affordable), default=0.0)
        good = [known for known in affordable if known.cost <= least * PRICE_UNCERTAINTY]
        return min(good, key=lambda known: (bool(known.unbound), known.rank), default=None)

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

    def _made_whole(self, cheapest: RatedCandidate, best: RatedCandidate) -> Iterator[RatedCandidate]:
        """Candidates made from node sets that bind every pod and cost no more than the best one does in the end."""
        self._below = best.cost * (PRICE_UNCERTAINTY if best.unbound else 1)
        for node_set in () if self._cannot_be_whole(cheapest) else self._whole_sets(cheapest.candidate):
            candidate = self._search.candidate_of(node_set)
            again = self._rate(candidate) if candidate is not None else None
            if again is not None:
                self._below = self._below if again.unbound else again.candidate.price
                yield again

    def _whole_sets(self, cheapest: AlternativePlan) -> Iterator[NodeSet]:
        """Sets that bind every pod and cost less than `_below`. The search begins with the nodes of the cheapest
        candidate, of the first plan, and of what would be launched if kube-scheduler went first."""
        starts = list(self._starting_sets(cheapest))
        for start in starts:
            lean = self._node_set_search.leaner(start)
            if not lean.bindings.unbound and lean.price < self._below - TOLERANCE:
                yield lean
        trails = [self._node_set_search.trail(start, self._below) for start in starts]
        reserved = max((self._search.touches_of_candidate(start) for start in starts), default=0)
        while self._below > cheapest.price + TOLERANCE and self._effort.take(reserved):
            whole_set = self._node_set_search.whole(trails, self._below)
            leanest = self._node_set_search.leaner(whole_set) if whole_set is not None else None
            self._effort.give(reserved)
            if leanest is None:
                return
            yield leanest

    def _cannot_be_whole(self, rated: RatedCandidate) -> bool:
        """Whether an unbound pod fits on no node at all, so that no set of nodes binds whole. For example, its local
        volume is on a node that is gone, or it asks for a label that no instance type has."""
        nodes = self._node_sets.new_nodes.of_claims(rated.candidate.opened)
        return any(self._node_sets.fits_nowhere(uid, dict.fromkeys(nodes)) for uid in rated.unbound)

    def _starting_sets(self, candidate: AlternativePlan) -> Iterator[NodeSet]:
        """The nodes of the candidate, of the first plan, and those that the planner launches for what kube-scheduler
        leaves unbound on the existing nodes."""
        uids = self._first.placed
        for start in (candidate, self._search.candidates[0]):
            node_set = self._node_sets.evaluate(self._node_sets.new_nodes.of_claims(start.opened), uids)
            if node_set is not None:
                yield node_set
        before = self._node_sets.evaluate((), uids) if self._problem.nodes else None
        nodes = self._node_sets.further(before) if before is not None else None
        node_set = self._node_sets.evaluate(tuple(nodes), uids) if nodes is not None else None
        if node_set is not None:
            yield node_set

    def _rate(self, candidate: AlternativePlan) -> RatedCandidate | None:
        """None if the effort is spent."""
        if not self._node_sets.affords(len(candidate.claims)):
            return None
        plan = assembled(candidate, self._first)
        node_set = self._node_sets.evaluate(self._node_sets.new_nodes.of_claims(plan.claims), plan.placed)
        if node_set is None:
            return None
        if not self._problem.settings.nominations:
            return RatedCandidate(candidate, node_set.bindings.unbound, self._node_set_search.later_price(node_set))
        if node_set.bindings.unbound and not plan.placements:
            node_set = self._node_sets.with_told(node_set, self._told_at_once(plan))
        return None if node_set is None else RatedCandidate(candidate, node_set.bindings.unbound, 0.0)

    def _told_at_once(self, plan: Plan) -> dict[str, str]:
        """The new nodes (by name) of the pods (uids) that are told theirs at once."""
        told: dict[str, str] = {}
        shapes = self._problem.shapes
        new = (node.info.labels for node in self._node_sets.new_nodes.of_claims(plan.claims))
        at_once = ToldAtOnce(labels_of_all(shapes.values(), [*(node.labels for node in self._problem.nodes), *new]))
        for number, claim in enumerate(plan.claims):
            on_node = map(self._problem.pod_of.__getitem__, claim.pods)
            in_queue = sorted(on_node, key=lambda pod: SCHEDULER_VARIANTS[0].queue_key(pod, 0))
            told |= dict.fromkeys((pod.uid for pod in at_once.of(in_queue, shapes.__getitem__)), new_node_name(number))
        return told
