"""What the cluster's scheduler would make of a plan: it does not know it, and binds pods in its own order.

The pods are bound one by one in the order of its queue (priority, then age), each to the feasible node with the highest
score, and those that found no place are tried again as long as others do. Modelled are the filters on resources,
taints, node affinity, host ports and volumes (zones and limits), and the scores for least and for balanced allocation,
preferred node affinity and PreferNoSchedule taints, with kube-scheduler's default weights; equal scores go to the first
name. What pods demand of one another, filters and scores, is asked of `company`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct

from kerf.engine.model.pods import PodShape
from kerf.engine.scheduling.daemons import daemons
from kerf.engine.scheduling.improvement.company import Company, Place, meets_one
from kerf.engine.scheduling.improvement.seats import DEFAULT_REQUESTS, Seat, existing, planned
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem import PendingPod, Problem
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.shapes import alternatives_of
from kerf.engine.scheduling.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.volumes import PodVolumes, claim_names, of_claims

NODE_AFFINITY, TAINT_TOLERATION = 2, 3
"""Weights of the default score plugins."""


class Bound(Struct, frozen=True):
    """What the scheduler makes of it: the seat of each pod (by uid), and the pods (uids) that are left over."""

    seats: dict[str, str]
    left: tuple[str, ...]


def unbound(problem: Problem, made: Plan) -> tuple[str, ...]:
    """The uids of the pods that have a place in the plan and that the scheduler would find none for."""
    given = daemons(problem.daemons, problem.shapes)
    seats = [existing(each, given, problem) for each in problem.nodes]
    seats += [planned(seat_name(number), each, given, problem) for number, each in enumerate(made.claims)]
    return bound(problem, seats, made.placed).left


def seat_name(number: int) -> str:
    """The name of the node of a planned claim, in its order."""
    return f"~new-{number:06d}"


def bound(problem: Problem, seats: Iterable[Seat], uids: frozenset[str]) -> Bound:
    """These pods bound to these nodes, which fill up with them."""
    return _Scheduler(problem, seats).run([each for each in problem.pods if each.uid in uids])


class _Scheduler:
    def __init__(self, problem: Problem, seats: Iterable[Seat]) -> None:
        self._problem = problem
        self.seats = sorted(seats, key=lambda each: each.name)
        self.places = [_place(number, each) for number, each in enumerate(self.seats)]
        given = daemons(problem.daemons, problem.shapes)
        leaving = [existing(each, given, problem) for each in problem.leaving]
        elsewhere = [_place(len(self.seats) + number, each) for number, each in enumerate(leaving)]
        self.company = Company(problem, [*self.places, *elsewhere])
        self.filled: list[int] = []  # the number of the seat of each pod, as they were bound
        self._classes: dict[tuple[str, ...], _Class] = {}

    def run(self, pods: Iterable[PendingPod]) -> Bound:
        found: dict[str, str] = {}
        waiting = sorted(pods, key=self._rank)
        before = len(waiting) + 1
        while len(waiting) < before:
            before, queue, waiting = len(waiting), waiting, []
            for pod in queue:
                number = self._class(pod).best()
                if number is None:
                    waiting.append(pod)
                else:
                    found[pod.uid] = self.seats[number].name
        return Bound(found, tuple(sorted(each.uid for each in waiting)))

    def _rank(self, pod: PendingPod) -> tuple[int, int, str, str, str]:
        """The order of the scheduler's queue."""
        return -self._problem.shapes[pod.shape].priority, pod.created, pod.namespace, pod.name, pod.uid

    def _class(self, pod: PendingPod) -> _Class:
        shape = self._problem.shapes[pod.shape]
        claims = claim_names(pod.namespace, pod.name, shape) if shape.volumes else ()
        key = pod.namespace, pod.shape, *claims
        found = self._classes.get(key)
        if found is None:
            facts = self._problem.volumes
            volumes = of_claims(facts, claims) if facts is not None else PodVolumes()
            found = self._classes[key] = _Class(self, pod.namespace, pod.shape, shape, volumes)
        return found


class _Class:
    """Pods of one shape before the scheduler: the nodes that may be feasible by score, best first; entries of a node
    that has been filled since are stale, and a new one is there."""

    def __init__(self, run: _Scheduler, namespace: str, digest: str, shape: PodShape, volumes: PodVolumes) -> None:
        self._run = run
        self._pair = namespace, digest
        self._shape = shape
        self._requests = {**shape.requests, "pods": 1}
        self._counted = {name: shape.requests.get(name) or least for name, least in DEFAULT_REQUESTS.items()}
        self._volumes = frozenset(volumes.attached)
        there = volumes.alternatives or (Requirements(),)
        asked = tuple(own.merged(each) for own in alternatives_of(shape) for each in there if not own.conflicts(each))
        possible = [number for number, seat in enumerate(run.seats) if _possible(shape, asked, seat)]
        fixed = _fixed_scores(shape, [run.seats[number] for number in possible])
        self._fixed = dict(zip(possible, fixed, strict=True))
        self._heap = [self._entry(number) for number in possible]
        heapify(self._heap)
        self._read = len(run.filled)
        self._picky = run.company.has_taste(self._pair)

    def best(self) -> int | None:
        """Bind one pod: the number of its seat."""
        for number in sorted(frozenset(self._run.filled[self._read :])):
            if number in self._fixed:
                heappush(self._heap, self._entry(number))
        feasible, refused = self._feasible()
        for entry in (*feasible, *refused):
            heappush(self._heap, entry)
        self._read = len(self._run.filled)
        if not feasible:
            return None
        number = self._preferred(feasible)
        self._run.seats[number].bind(self._shape, self._requests, self._counted, self._volumes)
        self._run.company.bound(self._pair, self._run.places[number])
        self._run.filled.append(number)
        return number

    def _entry(self, number: int) -> tuple[float, int, int]:
        seat = self._run.seats[number]
        return -self._fixed[number] - seat.score(self._requests, self._counted), number, seat.version

    def _feasible(self) -> tuple[list[tuple[float, int, int]], list[tuple[float, int, int]]]:
        """The first feasible node, or all where pods around matter to the choice; and those before that their company
        does not allow. Those that are stale or too full are dropped: nodes only fill up."""
        feasible: list[tuple[float, int, int]] = []
        refused: list[tuple[float, int, int]] = []
        while self._heap and (self._picky or not feasible):
            entry = heappop(self._heap)
            seat = self._run.seats[entry[1]]
            if entry[2] != seat.version or not seat.holds(self._shape, self._requests, self._volumes):
                continue
            allowed = self._run.company.allows(self._pair, self._run.places[entry[1]])
            (feasible if allowed else refused).append(entry)
        return feasible, refused

    def _preferred(self, feasible: Sequence[tuple[float, int, int]]) -> int:
        if not self._picky:
            return feasible[0][1]
        taste = self._run.company.taste(self._pair, [self._run.places[each[1]] for each in feasible])
        return min((entry[0] - liked, entry[1]) for entry, liked in zip(feasible, taste, strict=True))[1]


def _place(number: int, seat: Seat) -> Place:
    return Place(number, seat.labels, seat.known, seat.name, seat.taints)


# ── filters and scores that do not change ──────────────────────────────────────


def _possible(shape: PodShape, asked: tuple[Requirements, ...], seat: Seat) -> bool:
    hard = tuple(each for each in seat.taints if each.effect != PREFER_NO_SCHEDULE)
    if untolerated(hard, shape.tolerations):
        return False
    return meets_one(asked, seat.known)


def _fixed_scores(shape: PodShape, seats: list[Seat]) -> list[float]:
    """Preferred node affinity and soft taints, each brought to 0…100 over the feasible nodes."""
    liked = [
        sum(each.weight for each in shape.preferred_terms
            if seat.known.compatible(Requirements.of_expressions(each.term.expressions)))
        for seat in seats
    ]  # fmt: skip
    shunned = [
        sum(each.effect == PREFER_NO_SCHEDULE for each in untolerated(seat.taints, shape.tolerations)) for seat in seats
    ]
    most, worst = max(liked, default=0), max(shunned, default=0)
    return [
        NODE_AFFINITY * (100 * a / most if most else 0) + TAINT_TOLERATION * (100 - 100 * b / worst if worst else 100)
        for a, b in zip(liked, shunned, strict=True)
    ]
