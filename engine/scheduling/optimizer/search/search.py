"""Cheaper plans from a first one, by search within an effort (issue: packing better than first-fit).

First-fit fills few nodes of the largest types, whatever these cost. Three moves mend that:

* `regroup`: pods that can be moved without looking at others (see `movers`) are split into groups by worth (see
  `regroup`), and the planner plans each group alone, with all its types;
* `capped`: the planner plans the whole problem with types up to some size, which also holds where pods depend on
  one another; in the end every claim is planned alone with its constraints, so that it keeps all types it may become;
* `vary`: the planner plans it with other zones wherever one is as good as another, and that is regrouped.

Every claim of a result is the planner's own. A candidate replaces the best one only if nothing gets worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.kube_scheduler.plan_binding import PlanBinding
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.optimizer.candidates import (
    TOLERANCE,
    Candidate,
    CandidateClaim,
    assembled,
    counted_against_limits,
    first_candidate,
    has_preferences,
    independent_pods,
    may_replace,
    node_set_bounds,
    price,
)
from kerf.engine.scheduling.optimizer.effort import Effort, planning_touches
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, PodKind
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets
from kerf.engine.scheduling.optimizer.node_sets.plan_of_node_set import PlanOfNodeSet
from kerf.engine.scheduling.optimizer.partial_problems import (
    limited_resources,
    problem_of_claim,
    problem_of_group,
    problem_on_node,
    without_types,
)
from kerf.engine.scheduling.optimizer.search.movable_pods import MovablePods
from kerf.engine.scheduling.optimizer.search.preferences_kept import preferences_kept
from kerf.engine.scheduling.optimizer.search.regrouping import PodGroup, Regrouping
from kerf.engine.scheduling.optimizer.search.size_caps import types_above_caps
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import PendingPod, PoolInput, Problem

CLOSE_TO_BOUND = 1.005
"""A plan within this factor of the bound is good enough."""

MAX_VARIANTS = 8
"""How many choices among domains of equal rank are tried."""

BINDING_SHARE = 3
"""To look for an order of binding takes one part in so many of what a plan takes."""

CAPS_BEFORE_REGROUPING = 2
"""So many sizes are tried before regrouping: they show early what there is to gain, even where effort is short."""


class Search:
    """The search for one problem. `best` starts as the first plan."""

    def __init__(self, problem: Problem, first: Plan, menu: InstanceOptions, effort: Effort, bound: float) -> None:
        self.best = first_candidate(problem, first)
        self.found = [self.best]
        self._problem, self._first, self._menu, self._effort, self._bound = problem, first, menu, effort, bound
        self._pods = {each.uid: each for each in problem.pods}
        self._pools = {each.pool.name: each for each in problem.pools}
        self._weights = {uid: self._pools[c.node_pool].pool.weight for c in first.claims for uid in c.pods}
        self.fleets = NodeSets(problem, menu, independent_pods(problem), node_set_bounds(problem, first))
        self._questions = PlanOfNodeSet(problem, menu, self.fleets)
        self._movers = MovablePods(problem, menu, self.fleets.unattached, self._weights)
        self._known: dict[object, OpenedClaim | None] = {}
        self._kept: dict[str, int] | None = None

    def run(self) -> None:
        caps = list(types_above_caps(self._problem, self._menu, (self._pods[uid].shape for uid in self._weights)))
        self._cap(caps[:CAPS_BEFORE_REGROUPING])
        self._regroup_all()
        self._cap(caps[CAPS_BEFORE_REGROUPING:])
        self._vary()
        self._regroup_worst()

    def eased(self, candidate: Candidate, uids: Iterable[str], below: float) -> Candidate | None:
        """The candidate with some pods on further nodes, and the nodes they were on as large as before, if that costs
        less than `below`; None if it does not or they cannot be moved."""
        gone = frozenset(uids)
        moving = self._free(sorted(gone))
        if len(moving) < len(gone):
            return None
        kept = [each if gone.isdisjoint(each.claim.pods) else self._lightened(each, gone) for each in candidate.parts]
        eased = self._with_groups(candidate, [each for each in kept if each.claim.pods], moving, below)
        return eased if eased is not None and self._allowed(eased) else None

    def cost_of_fleet(self, fleet: NodeSet) -> int:
        """What `of_fleet` costs, about, in touches."""
        return self._questions.cost(fleet) + self._whole

    def of_fleet(self, fleet: NodeSet) -> Candidate | None:
        """The plan that has these nodes and the pods where the scheduler puts them; None if the planner does not make
        each of the nodes of its pods, or the plan may not replace the first one."""
        parts = []
        for berth, question in self._questions.of(fleet):
            claim = self._single(question, self._questions.key(berth, question))
            if claim is None or claim.price > berth.claim.price + TOLERANCE:
                return None
            parts.append(CandidateClaim(claim, -1, question))
        base = Plan(placements=self._questions.placements(fleet))
        made = Candidate(self._problem, base, tuple(parts))
        return made if self._allowed(made, by_pod=False) and self._binds(made) else None

    def _binds(self, candidate: Candidate) -> bool:
        """Whether it can be bound as it stands; the scheduler's own order may be the only one, which is too few."""
        if not any(shape.spread or shape.affinity for shape in self._problem.shapes.values()):
            return True
        return self._effort.take(self._whole // BINDING_SHARE) and self._binding.binds(
            assembled(candidate, self._first)
        )

    @cached_property
    def _binding(self) -> PlanBinding:
        return PlanBinding(self._problem)

    def _lightened(self, part: CandidateClaim, gone: frozenset[str]) -> CandidateClaim:
        claim = part.claim
        requests = claim.requests
        for uid in gone.intersection(claim.pods):
            requests = added(requests, {**self._problem.shapes[self._pods[uid].shape].requests, "pods": 1}, -1)
        left = tuple(uid for uid in claim.pods if uid not in gone)
        return replace(part, claim=replace(claim, pods=left, requests=requests))

    @property
    def _done(self) -> bool:
        return self.best.price <= self._bound * CLOSE_TO_BOUND or self._effort.left == 0

    def _offer(self, candidate: Candidate | None) -> bool:
        """Note a candidate that may replace the first plan; True if it is the cheapest so far."""
        if candidate is None or not self._allowed(candidate) or not self._bindable(candidate):
            return False
        self.found.append(candidate)
        if candidate.price > self.best.price - TOLERANCE:
            return False
        self.best = candidate
        return True

    def _allowed(self, candidate: Candidate, *, by_pod: bool = True) -> bool:
        self._effort.charge(len(self._problem.pods))
        return may_replace(self._problem, self._first, assembled(candidate, self._first), by_pod=by_pod)

    def _bindable(self, candidate: Candidate) -> bool:
        """See `Plan.uneven`; where pods that others look at were moved, all of them must be bindable."""
        if not candidate.moved and (not candidate.base.uneven or self._first.uneven):
            return True
        return self._effort.take(self._whole // BINDING_SHARE) and self._binding.binds(
            assembled(candidate, self._first)
        )

    # ── regrouping ──────────────────────────────────────

    def _regroup_all(self) -> None:
        """All pods that may move: those of whole claims, or, where they share claims with others, after those others
        have been planned without them."""
        if self._done:
            return
        movable = [each for each in self.best.parts if self._movable(each)]
        self._offer(self._regrouped(self.best, movable))
        moving = self._free(uid for each in self.best.parts for uid in each.claim.pods)
        rest = replace(self._problem, pods=tuple(each for each in self._problem.pods if each.uid not in moving))
        if len(movable) < len(self._first.claims) and moving and self._effort.take(_planning_touches(rest)):
            base = Candidate(rest, planned := plan(rest), first_candidate(rest, planned).parts)
            self._offer(self._with_groups(base, base.parts, moving, self.best.price))

    def _regroup_worst(self) -> None:
        """The claims that are dearest for what they hold, with their neighbours, until it no longer helps."""
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
        movable = [each for each in self.best.parts if self._movable(each)]
        return sorted(movable, key=lambda each: (-each.claim.price / len(each.claim.pods), each.claim.pods))

    def _movable(self, part: CandidateClaim) -> bool:
        return not part.claim.reservations and len(self._held(part)) == len(part.claim.pods)

    def _held(self, part: CandidateClaim) -> dict[str, PodKind]:
        """The pods (uids) of a claim that may go to others like it, and as what."""
        found = ((uid, self._movers.held(self._pods[uid], part.claim)) for uid in part.claim.pods)
        return {uid: kind for uid, kind in found if kind is not None}

    def _free(self, uids: Iterable[str]) -> dict[str, PodKind]:
        """Those of the pods (uids) that may go anywhere, and as what."""
        found = ((uid, self._movers.free(self._pods[uid])) for uid in uids)
        return {uid: kind for uid, kind in found if kind is not None}

    def _regrouped(self, base: Candidate, chosen: Sequence[CandidateClaim]) -> Candidate | None:
        """The base with the pods of some claims in other groups, if that promises to be cheaper."""
        if not chosen:
            return None
        gone = {each.claim.pods for each in chosen}
        kept = [each for each in base.parts if each.claim.pods not in gone]
        moving = {uid: kind for each in chosen for uid, kind in self._held(each).items()}
        return self._with_groups(base, kept, moving, self.best.price)

    def _with_groups(
        self, base: Candidate, kept: Sequence[CandidateClaim], moving: Mapping[str, PodKind], below: float
    ) -> Candidate | None:
        """The base with `kept` of its claims and these pods in groups of their own, if it costs less than `below`."""
        self._effort.charge(len(moving) + len(kept))
        pods: dict[PodKind, list[PendingPod]] = {}
        for pod in sorted(map(self._pods.__getitem__, moving), key=lambda each: (each.namespace, each.name, each.uid)):
            pods.setdefault(moving[pod.uid], []).append(pod)
        run = Regrouping(self._menu, list(pods), [len(each) for each in pods.values()])
        groups = run.groups(self._effort)
        if groups is None or price(e.claim for e in kept) + sum(g.price for g in groups) > below - TOLERANCE:
            return None
        parts = self._planned(groups, list(pods.items()), kept)
        moved = base.moved or any(kind.attached for kind in pods)
        return None if parts is None else Candidate(base.question, base.base, (*kept, *parts), moved)

    def _planned(
        self,
        groups: Iterable[PodGroup],
        pods: Sequence[tuple[PodKind, Sequence[PendingPod]]],
        kept: Sequence[CandidateClaim],
    ) -> list[CandidateClaim] | None:
        """Every group planned alone; None if one of them needs more than one node, or the effort is spent."""
        used = {name: self._counted(name, kept) for name in self._pools}
        parts = []
        taken = [0] * len(pods)
        for group in groups:
            members: list[tuple[PodKind, PendingPod]] = []
            for index, count in group.counts:
                kind, alike = pods[index]
                members += [(kind, each) for each in alike[taken[index] : taken[index] + count]]
                taken[index] += count
            pool = self._pools[self._menu.templates[group.template].name]
            part = self._alone(group, members, pool, used[pool.pool.name])
            if part is None:
                return None
            parts.append(part)
            counts = counted_against_limits(pool.pool, part.claim, self._problem, pool.catalogue)
            used[pool.pool.name] = {name: used[pool.pool.name][name] + amount for name, amount in counts.items()}
        return parts

    def _counted(self, pool: str, parts: Iterable[CandidateClaim]) -> Resources:
        """What claims count against a NodePool's limits."""
        given = self._pools[pool]
        total = dict.fromkeys(limited_resources(given.pool), 0)
        for each in parts:
            if each.claim.node_pool == pool and total:
                for name, amount in counted_against_limits(
                    given.pool, each.claim, self._problem, given.catalogue
                ).items():
                    total[name] += amount
        return total

    def _alone(
        self, group: PodGroup, members: Sequence[tuple[PodKind, PendingPod]], pool: PoolInput, used: Resources
    ) -> CandidateClaim | None:
        chosen = self._menu.templates[group.template].catalogue.types[group.kind]
        largest = {name: chosen.capacity.get(name, 0) for name in used}
        usage = {**pool.usage, **{name: pool.usage.get(name, 0) + amount for name, amount in used.items()}}
        given, pods = replace(pool, usage=usage), [pod for _, pod in members]
        labels = dict(pair for kind, _ in members for pair in kind.labels)
        if any(kind.attached for kind, _ in members):
            question = problem_on_node(self._problem, labels, pods, given, largest, preferences=True)
        else:
            question = problem_of_group(self._problem, pods, given, largest)
        shapes = tuple(sorted(each.shape for each in question.pods))
        key = None if used else (group.template, group.kind, tuple(sorted(labels.items())), shapes)
        claim = self._single(question, key)
        return None if claim is None else CandidateClaim(claim, -1, question)

    def _single(self, question: Problem, key: object) -> OpenedClaim | None:
        """The one claim that the planner opens for a question, None if it is not exactly one for all. Equal keys are
        equal questions but for the names of the pods."""
        if key is not None and key in self._known:
            found = self._known[key]
        else:
            made = plan(question) if self._effort.take(_planning_touches(question)) else None
            whole = made is not None and len(made.claims) == 1 and not (made.unplaced or made.ignored or made.truncated)
            found = made.claims[0] if made is not None and whole else None
            if key is not None:
                self._known[key] = found
        if found is None:
            return None
        names = sorted(question.pods, key=lambda each: (each.namespace, each.name, each.uid))
        return replace(found, pods=tuple(each.uid for each in names))

    # ── smaller types ──────────────────────────────────────

    def _cap(self, caps: Iterable[list[str]]) -> None:
        for types in caps:
            if self._done or not self._effort.take(self._whole):
                return
            question = replace(self._problem, unavailable=self._problem.unavailable | without_types(types))
            self._try(question, price(self._first.claims))

    def _vary(self) -> None:
        """The whole problem again with other domains wherever the planner takes one of equals (the first pod of an
        affinity, the zones of a spread in their order), all types or those of the best plan so far."""
        if not any(key != HOSTNAME for shape in self._problem.shapes.values() for key in _topology_keys(shape)):
            return
        for variant in range(1, MAX_VARIANTS + 1):
            if self._done or not self._effort.take(self._whole):
                return
            self._try(replace(self.best.question, pods=self._problem.pods, variant=variant), self.best.price)

    def _try(self, question: Problem, below: float) -> None:
        """Offer a plan of the whole problem, where it costs less than `below`; one with other domains also regrouped,
        which comes to something else than the pods of the best plan."""
        base = plan(question)
        narrow = question.unavailable != self._problem.unavailable
        made = Candidate(
            question, base, tuple(CandidateClaim(claim, n, narrow=narrow) for n, claim in enumerate(base.claims))
        )
        if not self._first.placed <= base.placed:
            return
        movable = [each for each in made.parts if self._movable(each)] if question.variant else []
        regrouped = self._regrouped(made, movable)
        found = [each for each in (regrouped, made) if each is not None and each.price < below - TOLERANCE]
        if found and self._as_willing(question):
            for each in found:
                self._offer(each)

    def _as_willing(self, question: Problem) -> bool:
        """Whether every pod keeps as many preferences under a question as in the first plan."""
        if not has_preferences(self._problem):
            return True
        if self._kept is None and self._effort.take(self._whole):
            self._kept = preferences_kept(self._problem)
        if self._kept is None or not self._effort.take(self._whole):
            return False
        kept = preferences_kept(question)
        return all(kept.get(uid, 0) >= before for uid, before in self._kept.items())

    @property
    def _whole(self) -> int:
        return _planning_touches(self._problem)

    def widened(self, candidate: Candidate) -> Candidate:
        """With the claims that were planned with fewer types open to all that they may become, as far as the effort
        goes and the cheapest one stays the same."""
        parts = tuple(self._reopened(each) if each.narrow else each for each in candidate.parts)
        wide = replace(candidate, parts=parts)
        return wide if self._allowed(wide, by_pod=False) else candidate

    def _reopened(self, part: CandidateClaim) -> CandidateClaim:
        claim = part.claim
        if claim.reservations:
            return part
        pool = self._pools[claim.node_pool]
        largest = counted_against_limits(pool.pool, claim, self._problem, pool.catalogue)
        members = [self._pods[uid] for uid in claim.pods]
        question = problem_of_claim(self._problem, claim, members, pool, largest)
        shapes = tuple(sorted(each.shape for each in members))
        wide = self._single(question, (claim.node_pool, claim.constraints, tuple(sorted(largest.items())), shapes))
        if wide is None or wide.reservations or wide.instance_types[0] != claim.instance_types[0]:
            return part  # the node that was rated is launched first, and takes nothing that others hold
        return CandidateClaim(replace(wide, constraints=claim.constraints, labels=claim.labels), part.base, question)


def _planning_touches(question: Problem) -> int:
    """Of planning it."""
    return planning_touches(question.pods, question.shapes, len(question.nodes))


def _topology_keys(shape: PodShape) -> list[str]:
    """The labels whose domains the planner chooses for such pods."""
    spreads = [each.topology_key for each in shape.spread]
    terms = [each.topology_key for each in (*shape.affinity, *shape.anti_affinity)]
    return [normalise(each) for each in (*spreads, *terms)]
