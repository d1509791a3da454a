"""The search for cheaper candidates, within an effort.

The planner fits pods first-fit: it fills few nodes of the largest types, whatever these cost. Four changes find better
plans:

* regrouping: pods that may move freely (`movable_pods`) are split into groups by what their requests are worth
  (`regrouping`), and the planner plans each group alone, with all its types;
* smaller types: the planner plans the whole problem with types up to some size (`size_caps`). This also helps pods that
  depend on one another. In the end each claim is planned alone with its constraints, to get back all its types;
* another NodePool first: the planner tries NodePools of equal weight in another order. Regrouping would leave
  pods that others tie to their places on the first one;
* other domains: the planner takes other zones wherever one is as good as another, and the result is regrouped.

Every claim of a candidate is the planner's own. A candidate counts only if nothing gets worse (`may_replace`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

from msgspec.structs import replace

from kerf.engine.model.labels import HOSTNAME
from kerf.engine.scheduling.kube_scheduler.plan_binding import PlanBinding
from kerf.engine.scheduling.matching.resources import added, total
from kerf.engine.scheduling.optimizer.alternative_plans import (
    TOLERANCE,
    AlternativePlan,
    CandidateClaim,
    assembled,
    candidate_of_plan,
    may_replace,
    placements,
    total_price,
)
from kerf.engine.scheduling.optimizer.effort import Effort, planning_touches
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, PodKind
from kerf.engine.scheduling.optimizer.lower_bound import PriceBounds
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets
from kerf.engine.scheduling.optimizer.node_sets.plan_of_node_set import PlanOfNodeSet
from kerf.engine.scheduling.optimizer.partial_problems import without_types
from kerf.engine.scheduling.optimizer.search.movable_pods import MovablePods
from kerf.engine.scheduling.optimizer.search.own_pools import own_pools
from kerf.engine.scheduling.optimizer.search.preferences_kept import has_preferences, preferences_kept
from kerf.engine.scheduling.optimizer.search.regrouping import Known, Regrouping
from kerf.engine.scheduling.optimizer.search.single_claims import SingleClaims
from kerf.engine.scheduling.optimizer.search.size_caps import types_above_caps
from kerf.engine.scheduling.optimizer.spread_judge import SpreadJudge
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import MAX_POOLS_FIRST, after_equals, plan
from kerf.engine.scheduling.pods.pod_requirements import topology_keys
from kerf.engine.scheduling.problem.problem import PendingPod, Problem, by_name

CLOSE_TO_BOUND = 1.005
"""The search stops at a plan that costs at most this factor of the lower bound."""

DEAR_PLAN = 4
"""A plan is dear if it takes more than one part in so many of the effort that is left."""

MAX_VARIANTS = 8
"""How many choices among domains of equal rank are tried."""

BINDING_SHARE = 3
"""Looking for an order of binding costs one part in so many of what planning costs."""

CAPS_BEFORE_REGROUPING = 2
"""So many sizes are tried before regrouping: they show early what there is to gain, even where effort is short. One is,
where a plan is dear: regrouping gains more."""


class Search:
    """The search for one problem. `best` is the cheapest candidate so far, `candidates` has all that count; both begin
    with the first plan."""

    def __init__(
        self,
        problem: Problem,
        first: Plan,
        options: InstanceOptions,
        effort: Effort,
        bounds: PriceBounds,
        judge: SpreadJudge,
    ) -> None:
        self.best = candidate_of_plan(problem, first)
        self.candidates = [self.best]
        self._problem, self._first, self._options = problem, first, options
        self._effort, self._bounds, self._spread_judge = effort, bounds, judge
        self._planning_touches = planning_touches(problem)
        self.node_sets = NodeSets(problem, first, options, effort)
        self._plan_of_node_set = PlanOfNodeSet(problem, options, self.node_sets)
        self._single_claims = SingleClaims(problem, options, effort)
        self._own_pools = own_pools(problem, first, options, self.node_sets.independent)
        self._movable_pods = MovablePods(problem, options, self.node_sets.independent, self._own_pools)
        self._preferences: dict[str, int] | None = None
        self._known_groups: Known = {}
        self._last_movable: tuple[AlternativePlan | None, Sequence[CandidateClaim]] = None, ()

    def run(self) -> None:
        """Search until a plan is close to the lower bound, or the effort is spent, or nothing is left to try."""
        shapes = (self._problem.pod_of[uid].shape for uid in self._first.on_new_nodes)
        caps = types_above_caps(self._problem, self._options, shapes)
        any_cheaper = total_price(self._first.claims)
        self._plan_again(self._with_caps(islice(caps, 1 if self._is_dear else CAPS_BEFORE_REGROUPING)), any_cheaper)
        self._regroup_all()
        self._plan_again(self._with_pools_first())
        self._plan_again(self._with_caps(caps), any_cheaper)
        self._plan_again(self._with_other_domains())
        self._regroup_worst()

    def with_further_nodes(
        self, candidate: AlternativePlan, uids: Iterable[str], below: float
    ) -> AlternativePlan | None:
        """The candidate with these pods on further nodes, while the nodes that they leave stay as large. None if that
        costs `below` or more, or they cannot be moved."""
        leaving = frozenset(uids)
        moving = self._movable_anywhere(sorted(leaving))
        if len(moving) < len(leaving):
            return None
        kept = [left for claim in candidate.claims if (left := self._without_pods(claim, leaving)).claim.pods]
        grouped = self._with_groups(candidate, kept, moving, below)
        return grouped if grouped is not None and self._allowed(grouped) else None

    def keeps_spreads(self, node_set: NodeSet) -> bool:
        """Whether the pods, where they are bound, break no spread more than in the first plan."""
        return not self._spread_judge.keys or self._spread_judge.keeps(self._plan_of_node_set.outline(node_set))

    def touches_of_candidate(self, node_set: NodeSet) -> int:
        """What `candidate_of` costs, about, in touches."""
        return self._plan_of_node_set.planning_touches(node_set) + self._planning_touches

    def candidate_of(self, node_set: NodeSet) -> AlternativePlan | None:
        """The candidate with these nodes, and the pods where kube-scheduler puts them. None if the planner does not
        make each of the nodes for its pods, or the candidate may not replace the first plan."""
        claims = []
        for node, problem in self._plan_of_node_set.problems(node_set):
            claim = self._single_claims.claim(problem, self._plan_of_node_set.key(node, problem))
            if claim is None or claim.price > node.claim.price + TOLERANCE:
                return None
            claims.append(CandidateClaim(claim, -1, problem))
        base = Plan(placements=placements(self._problem, node_set.bindings.node_of))
        # Where topology matters, that kube-scheduler's model found one order is not enough: it may be the only one.
        related = any(shape.spread or shape.affinity for shape in self._problem.shapes.values())
        candidate = AlternativePlan(self._problem, base, tuple(claims))
        allowed = self._allowed(candidate) and (not related or self._binds_in_some_order(candidate))
        return candidate if allowed else None

    def _binds_in_some_order(self, candidate: AlternativePlan) -> bool:
        """Whether its pods can be bound as they stand, in some order; False, too, if the effort is spent."""
        affordable = self._effort.take(self._planning_touches // BINDING_SHARE)
        return affordable and self._plan_binding.binds(assembled(candidate, self._first))

    @cached_property
    def _plan_binding(self) -> PlanBinding:
        return PlanBinding(self._problem)

    def _without_pods(self, part: CandidateClaim, uids: frozenset[str]) -> CandidateClaim:
        claim = part.claim
        left = tuple(uid for uid in claim.pods if uid not in uids)
        shapes = (self._problem.shapes[self._problem.pod_of[uid].shape] for uid in uids.intersection(claim.pods))
        leaving = total({**shape.requests, "pods": 1} for shape in shapes)
        return replace(part, claim=replace(claim, pods=left, requests=added(claim.requests, leaving, -1)))

    @property
    def _done(self) -> bool:
        return self.best.price <= self._bounds.lower * CLOSE_TO_BOUND or self._effort.left == 0

    def _offer(self, candidate: AlternativePlan | None) -> bool:
        """Note a candidate if it may replace the first plan; True if it is the cheapest so far."""
        if candidate is None or not self._allowed(candidate) or not self._bindable(candidate):
            return False
        self.candidates.append(candidate)
        if candidate.price > self.best.price - TOLERANCE:
            return False
        self.best = candidate
        return True

    def _allowed(self, candidate: AlternativePlan) -> bool:
        self._effort.charge(len(self._problem.pods))
        planned = assembled(candidate, self._first)
        return may_replace(self._problem, self._first, planned, self._own_pools) and self._spread_judge.keeps(planned)

    def _bindable(self, candidate: AlternativePlan) -> bool:
        """Whether its pods can be bound in some order: checked where pods that others look at were moved, or where the
        planner was not sure (`Plan.uneven`) and was so of the first plan."""
        doubtful = candidate.moved or (candidate.base.uneven and not self._first.uneven)
        return not doubtful or self._binds_in_some_order(candidate)

    # ── regrouping ──────────────────────────────────────

    def _regroup_all(self) -> None:
        """Regroup all pods that may move: first those of claims whose pods may all move; then also those that share
        claims with others, after the others have been planned without them."""
        if self._done:
            return
        movable = self._all_movable(self.best)
        if not self._offer(self._regrouped(self.best, movable)):
            self._regroup_by_pool(movable)
        moving = self._movable_anywhere(uid for claim in self.best.claims for uid in claim.claim.pods)
        rest = replace(self._problem, pods=tuple(pod for pod in self._problem.pods if pod.uid not in moving))
        if len(movable) < len(self._first.claims) and moving and self._effort.take(planning_touches(rest)):
            base = candidate_of_plan(rest, plan(rest, told=False))
            self._offer(self._with_groups(base, base.claims, moving, self.best.price))

    def _regroup_by_pool(self, movable: Iterable[CandidateClaim]) -> None:
        """Regroup the claims of each NodePool by themselves: groups that exceed the limits of one NodePool are none,
        and that must not keep those of the others as they are."""
        by_pool: dict[str, list[CandidateClaim]] = {}
        for part in movable:
            by_pool.setdefault(part.claim.node_pool, []).append(part)
        for name in sorted(by_pool) if len(by_pool) > 1 else ():
            self._offer(self._regrouped(self.best, by_pool[name]))

    def _regroup_worst(self) -> None:
        """Regroup the claims that are dearest for what they hold, some at a time, until it no longer helps."""
        size, start, dearest = 3, 0, self._dearest()
        while not self._done:
            chosen = dearest[start : start + size]
            if len(chosen) < 2:
                if size >= len(dearest):
                    return
                size, start = size * 2, 0
            elif self._offer(self._regrouped(self.best, chosen)):
                start, dearest = 0, self._dearest()
            else:
                start += size

    def _dearest(self) -> list[CandidateClaim]:
        """The claims that may be regrouped, the dearest per pod first."""
        movable = self._all_movable(self.best)
        return sorted(movable, key=lambda claim: (-claim.claim.price / len(claim.claim.pods), claim.claim.pods))

    def _all_movable(self, candidate: AlternativePlan) -> Sequence[CandidateClaim]:
        """The claims whose pods may all move to other nodes like theirs. Remembered for the last candidate."""
        if self._last_movable[0] is not candidate:
            self._last_movable = candidate, tuple(filter(self._is_movable, candidate.claims))
        return self._last_movable[1]

    def _is_movable(self, part: CandidateClaim) -> bool:
        pods = map(self._problem.pod_of.__getitem__, part.claim.pods)
        kind_beside = self._movable_pods.kind_beside
        return not part.claim.reservations and all(kind_beside(pod, part.claim) is not None for pod in pods)

    def _movable_beside(self, part: CandidateClaim) -> dict[str, PodKind]:
        """The pods (uids) of a claim that may move to another node like it, and as what."""
        pods = map(self._problem.pod_of.__getitem__, part.claim.pods)
        kinds = {pod.uid: self._movable_pods.kind_beside(pod, part.claim) for pod in pods}
        return {uid: kind for uid, kind in kinds.items() if kind is not None}

    def _movable_anywhere(self, uids: Iterable[str]) -> dict[str, PodKind]:
        """Those of the pods (uids) that may move to any node, and as what."""
        kinds = {uid: self._movable_pods.kind_for_any_node(self._problem.pod_of[uid]) for uid in uids}
        return {uid: kind for uid, kind in kinds.items() if kind is not None}

    def _regrouped(self, base: AlternativePlan, chosen: Sequence[CandidateClaim]) -> AlternativePlan | None:
        """The base with the pods of some claims in other groups, if that is cheaper than the best candidate."""
        if not chosen:
            return None
        dissolved = {claim.claim.pods for claim in chosen}
        kept = [claim for claim in base.claims if claim.claim.pods not in dissolved]
        moving = {uid: kind for claim in chosen for uid, kind in self._movable_beside(claim).items()}
        return self._with_groups(base, kept, moving, self.best.price)

    def _with_groups(
        self, base: AlternativePlan, kept: Sequence[CandidateClaim], moving: Mapping[str, PodKind], below: float
    ) -> AlternativePlan | None:
        """The base with `kept` of its claims and the `moving` pods in new groups, if it costs less than `below`."""
        self._effort.charge(len(moving) + len(kept))
        pods: dict[PodKind, list[PendingPod]] = {}
        for pod in sorted(map(self._problem.pod_of.__getitem__, moving), key=by_name):
            pods.setdefault(moving[pod.uid], []).append(pod)
        counts = [len(alike) for alike in pods.values()]
        regrouping = Regrouping(self._options, list(pods), counts, self._known_groups)
        groups = regrouping.groups(self._effort)
        if groups is None or total_price(e.claim for e in kept) + sum(g.price for g in groups) > below - TOLERANCE:
            return None
        planned = self._single_claims.of_groups(groups, list(pods.items()), kept)
        moved = base.moved or any(kind.related for kind in pods)
        return None if planned is None else AlternativePlan(base.problem, base.base, (*kept, *planned), moved)

    # ── smaller types, other domains ──────────────────────────────────────

    def _plan_again(self, changed: Iterable[Problem], below: float | None = None) -> None:
        """Plan the whole problem again with each of these changes, and offer plans that cost less than `below`; None:
        than the best candidate."""
        for problem in changed if self._pays_to_plan_again else ():
            if self._done or not self._effort.take(self._planning_touches):
                return
            self._try(problem, self.best.price if below is None else below)

    def _with_caps(self, caps: Iterable[list[str]]) -> Iterator[Problem]:
        """Once without each of these lists of types."""
        for types in caps:
            left_out, first_pool = self._problem.unavailable | without_types(types), self.best.problem.first_pool
            yield replace(self._problem, unavailable=left_out, first_pool=first_pool)

    @cached_property
    def _is_dear(self) -> bool:
        """Whether planning the whole problem again takes much of the effort."""
        return self._planning_touches > self._effort.left // DEAR_PLAN

    @cached_property
    def _pays_to_plan_again(self) -> bool:
        """Whether that takes little, or the nodes of the first plan are of types that cost more than their room is
        worth."""
        return not self._is_dear or total_price(self._first.claims) > self._bounds.worth * CLOSE_TO_BOUND

    def _with_pools_first(self) -> Iterator[Problem]:
        """Once with each other NodePool first that has the weight of one on which pods are that may not move anywhere.
        Regrouping leaves these where they are, or in their domains."""
        placed = {uid: claim.claim.node_pool for claim in self.best.claims for uid in claim.claim.pods}
        tied = {placed[uid] for uid in placed.keys() - self._movable_anywhere(sorted(placed)).keys()}
        weights = {self._problem.pool_of[name].pool.weight for name in tied}
        others = [pool.name for pool in after_equals(self._problem.pools) if pool.weight in weights]
        return (replace(self._problem, first_pool=name) for name in others[:MAX_POOLS_FIRST])

    def _with_other_domains(self) -> Iterator[Problem]:
        """With the types of the best candidate, and with all where it was planned with fewer. The planner takes other
        domains wherever several are equal: for the first pod of an affinity, and in the order of the zones of a
        spread."""
        keys = frozenset[str]().union(*map(topology_keys, self._problem.shapes.values()))
        for variant in range(1, MAX_VARIANTS + 1) if keys - {HOSTNAME} else ():
            own = self.best.problem
            for left_out in dict.fromkeys((own.unavailable, self._problem.unavailable)):
                yield replace(own, pods=self._problem.pods, unavailable=left_out, variant=variant)

    def _try(self, problem: Problem, below: float) -> None:
        """Offer the plan of a changed problem if it costs less than `below`. A plan with other domains, or with
        another NodePool first, is also offered regrouped: that gives other groups than regrouping the best one.

        Where it leaves pods pending, those of their kinds are placed first: on small nodes others can take the room
        beside pods that they must be with."""
        planned = plan(problem, told=False)
        pending = self._first.placed - planned.placed
        if pending and self._effort.take(self._planning_touches):
            problem = _with_kinds_ahead(problem, pending)
            planned = plan(problem, told=False)
            pending = self._first.placed - planned.placed
        if pending:
            return
        narrow = problem.unavailable != self._problem.unavailable
        candidate = candidate_of_plan(problem, planned, narrow=narrow)
        regroups = problem.variant or problem.first_pool
        movable = self._all_movable(candidate) if regroups else ()
        regrouped = self._regrouped(candidate, movable)
        cheaper = [
            alternative
            for alternative in (regrouped, candidate)
            if alternative is not None and alternative.price < below - TOLERANCE
        ]
        if cheaper and self._keeps_preferences(problem):
            for alternative in cheaper:
                self._offer(alternative)

    def _keeps_preferences(self, problem: Problem) -> bool:
        """Whether every pod keeps as many preferences in the plan of a problem as in the first plan."""
        if not has_preferences(self._problem):
            return True
        if self._preferences is None and self._effort.take(self._planning_touches):
            self._preferences = preferences_kept(self._problem)
        if self._preferences is None or not self._effort.take(self._planning_touches):
            return False
        kept = preferences_kept(problem)
        return all(kept.get(uid, 0) >= before for uid, before in self._preferences.items())

    # ── all types again ──────────────────────────────────────

    def widened(self, candidate: AlternativePlan) -> AlternativePlan:
        """The candidate with all types that its claims may become, also for claims that were planned with fewer, as far
        as the effort goes and the cheapest type stays the same."""
        if not any(part.narrow for part in candidate.claims):
            return candidate
        claims = tuple(self._single_claims.widened(part) if part.narrow else part for part in candidate.claims)
        wide = replace(candidate, claims=claims)
        return wide if self._allowed(wide) else candidate


def _with_kinds_ahead(problem: Problem, uids: frozenset[str]) -> Problem:
    """The problem with these pods (uids), and all that are like them, placed before the others."""
    first = max(pod.ahead for pod in problem.pods) + 1
    kinds = {problem.pod_of[uid].shape_key for uid in uids}
    return replace(
        problem,
        pods=tuple(replace(p, ahead=first) if p.shape_key in kinds else p for p in problem.pods),
    )
