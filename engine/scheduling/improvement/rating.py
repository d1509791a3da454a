"""What the cluster's scheduler would make of a plan: it does not know it, and binds pods in its own order.

The pods are bound one by one in the order of its queue (priority, then age), each to the feasible node with the highest
score, and those that found no place are tried again as long as others do. Modelled are the filters on resources,
taints, node affinity, host ports and volumes (zones and limits), and the scores for least and for balanced allocation,
preferred node affinity and PreferNoSchedule taints, with kube-scheduler's default weights; equal scores go to the first
name. What pods demand of one another, filters and scores, is asked of `company`; what is not known of the scheduler is
a `Habit`.

A search rates many sets of new nodes beside the same old ones, so whatever does not depend on the new ones is made once
per problem, and what depends on a kind of node once per kind.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.pods import PodShape
from kerf.engine.scheduling.daemons import daemons
from kerf.engine.scheduling.improvement.company import Company
from kerf.engine.scheduling.improvement.habits import USUAL, Habit
from kerf.engine.scheduling.improvement.manners import Manners, Pair, Place, meets_one
from kerf.engine.scheduling.improvement.seats import Liking, Seat, counted, existing, planned
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem import PendingPod, Problem
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.shapes import alternatives_of
from kerf.engine.scheduling.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.volumes import PodVolumes, claim_names, of_claims

TASTES_A_TOUCH, SELECTIONS_A_TOUCH = 10, 8
"""For the cost of a touch so many counts of pods around a place are read, or pods compared with a selector."""
TOUCHES_A_NODE = 10
"""What it costs to look at an old node for the first time."""

NODE_AFFINITY, TAINT_TOLERATION = 2, 3
"""Weights of the default score plugins."""

_encoder = msgspec.msgpack.Encoder(order="deterministic")

INDIFFERENT = 100.0 * TAINT_TOLERATION
"""The fixed score of all nodes where pods like none of them better, and no soft taint repels them."""

Placed = tuple[Liking, int]
"""What pods think of a node, and its number."""
Entry = tuple[float, int, int, int]
"""The score of a node, less is better, its rank among equals, its number and its version."""


class Bound(Struct, frozen=True):
    """What the scheduler makes of it: the seat of each pod (by uid), and the pods (uids) that are left over."""

    seats: dict[str, str]
    left: tuple[str, ...]


def unbound(problem: Problem, made: Plan, habit: Habit = USUAL) -> tuple[str, ...]:
    """The uids of the pods that have a place in the plan and that a scheduler of this habit would find none for."""
    given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
    seats = [planned(seat_name(number), each, given, problem) for number, each in enumerate(made.claims)]
    found, _ = Scheduler(problem).bound(seats, made.placed, habit=habit)
    assert found is not None  # there is no end to the effort
    return found.left


def seat_name(number: int) -> str:
    """The name of the node of a planned claim, in its order."""
    return f"~new-{number:06d}"


class Scheduler:
    """The scheduler before the old nodes of a problem, which is asked about several sets of new ones."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        self.old = sorted((existing(each, given, problem) for each in problem.nodes), key=lambda each: each.name)
        leaving = [existing(each, given, problem) for each in problem.leaving]
        self._places = [_place(number, each) for number, each in enumerate([*self.old, *leaving])]
        self._manners = Manners(problem)
        self._company = Company(problem, self._manners, self._places)
        self._classes: dict[object, _Class] = {}
        self._by_pod: dict[tuple[bool, tuple[str, ...]], _Class] = {}
        self._queues: dict[Habit, list[PendingPod]] = {}

    def bound(
        self,
        new: Sequence[Seat],
        uids: frozenset[str],
        most: float = math.inf,
        habit: Habit = USUAL,
        spare: float = math.inf,
    ) -> tuple[Bound | None, int]:
        """These pods bound to the old nodes and to these, which fill up with them, and how often a node was looked at
        for a pod; None when that was more than `most`, or when it is known that more pods than `spare` are left over.
        Numbers of nodes: the old ones, those that leave, the new ones."""
        run = self._on(new, frozenset(), habit)
        return run.run([each for each in self.queue(habit) if each.uid in uids], most, spare), run.touches

    def rebound(
        self,
        new: Sequence[Seat],
        queue: Sequence[PendingPod],
        gone: frozenset[str],
        moved: Iterable[tuple[Pair, str]],
        habit: Habit = USUAL,
    ) -> Bound:
        """These pods bound one by one to the old nodes but those that are gone, and to the new ones. `moved`: pods that
        are counted where they are, on nodes of these names, and are not there any more."""
        run = self._on(new, gone, habit)
        for pair, name in moved:
            run.company.left(pair, self._numbers[name])
        found = run.run(queue, math.inf, math.inf)
        assert found is not None  # there is no end to the effort
        return found

    def _on(self, new: Sequence[Seat], gone: frozenset[str], habit: Habit) -> _Run:
        before = len(self._places)
        places = [_place(before + number, each) for number, each in enumerate(new)]
        old = [None if each.name in gone else each for each in self.old]
        seats = [*old, *([None] * (before - len(old))), *new]
        return _Run(self, seats, self._company.joined(places), before, habit)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {each.name: each.index for each in self._places}

    def queue(self, habit: Habit) -> list[PendingPod]:
        """All pods that wait, in the order in which a scheduler of this habit comes to them."""
        found = self._queues.get(habit)
        if found is None:
            shapes = self._problem.shapes
            found = sorted(self._problem.pods, key=lambda each: habit.turn(each, shapes[each.shape].priority))
            self._queues[habit] = found
        return found

    def may_find_later(self, pair: Pair) -> bool:
        """Whether pods that are bound may make a place for one that found none; else there is less room only."""
        wanted = self._manners.demands[pair]
        return bool(wanted.spreads or wanted.together)

    def class_of(self, pod: PendingPod, newer: bool) -> _Class:
        shape = self._problem.shapes[pod.shape]
        claims = claim_names(pod.namespace, pod.name, shape) if shape.volumes else ()
        key = newer, (pod.namespace, pod.shape, *claims)
        found = self._by_pod.get(key)
        if found is None:
            facts = self._problem.volumes
            volumes = of_claims(facts, claims) if facts is not None else PodVolumes()
            found = self._by_pod[key] = self._interned((pod.namespace, pod.shape), shape, volumes, newer)
        return found

    def _interned(self, pair: Pair, shape: PodShape, volumes: PodVolumes, newer: bool) -> _Class:
        """One class for all pods that nothing here tells apart."""
        demands, entered = self._manners.demands[pair], self._manners.entered(pair)
        plain = replace(
            shape, labels={}, priority=0, priority_class="", grace=None, spread=(), affinity=(), anti_affinity=()
        )
        alone = newer, _encoder.encode(plain), volumes
        key = alone, demands, entered
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = _Class(len(self._classes), pair, shape, volumes, self.old, newer, alone)
        return found


def making(problem: Problem) -> int:
    """What a `Scheduler` costs to make, in touches, at the most."""
    pairs = {(each.namespace, each.shape) for each in problem.pods}
    every = pairs | {(each.namespace, each.shape) for each in problem.bound}
    shapes = [problem.shapes[digest] for _, digest in every]
    terms = sum(len(each.spread) + len(each.affinity) + len(each.anti_affinity) for each in shapes)
    nodes = len(problem.nodes) + len(problem.leaving)
    return len(every) * terms // SELECTIONS_A_TOUCH + nodes * (TOUCHES_A_NODE + len(pairs)) + len(problem.bound)


class _Class:
    """Pods of one shape before the scheduler. `old`: the old nodes that have a place for one, by number; `newer`: see
    `Habit`; `alone`: equal for all that a node by itself does not tell apart."""

    def __init__(
        self,
        number: int,
        pair: Pair,
        shape: PodShape,
        volumes: PodVolumes,
        old: Sequence[Seat],
        newer: bool,
        alone: Hashable,
    ) -> None:
        self.number = number
        self.newer = newer
        self.pair = pair
        self.shape = shape
        self.requests = {**shape.requests, "pods": 1}
        self.counted = counted(shape.requests)
        self.volumes = frozenset(volumes.attached)
        there = volumes.alternatives or (Requirements(),)
        self._asked = tuple(
            own.merged(each) for own in alternatives_of(shape) for each in there if not own.conflicts(each)
        )
        self._kinds: dict[int, Liking | None] = {}
        self.old = [(place, n) for n, each in enumerate(old) if (place := each.liking(alone, self._looked)) is not None]
        self.indifferent = not _tell_apart(self.old)
        self.fixed = dict.fromkeys((number for _, number in self.old), INDIFFERENT)
        self._ranked: dict[Habit, list[Entry]] = {}

    def ranked(self, habit: Habit) -> list[Entry]:
        """The old nodes while nothing has been bound to them, best first, if the pods are `indifferent`."""
        found = self._ranked.get(habit)
        if found is None:
            made = [(-INDIFFERENT - score, habit.rank(number), number, 0) for (_, _, score), number in self.old]
            found = self._ranked[habit] = sorted(made)
        return found

    def place(self, seat: Seat) -> Liking | None:
        """The score is that while nothing has been bound to it; None if it is no place for them."""
        if seat.kind < 0:
            return self._looked(seat)
        if seat.kind not in self._kinds:
            self._kinds[seat.kind] = self._looked(seat.origin)
        return self._kinds[seat.kind]

    def _looked(self, seat: Seat) -> Liking | None:
        if not self._possible(seat) or not seat.holds(self.shape, self.requests, self.volumes):
            return None
        liked = sum(
            each.weight
            for each in self.shape.preferred_terms
            if seat.known.compatible(Requirements.of_expressions(each.term.expressions))
        )
        soft = untolerated(seat.taints, self.shape.tolerations) if seat.taints else ()
        shunned = sum(each.effect == PREFER_NO_SCHEDULE for each in soft)
        return liked, shunned, self.score(seat)

    def score(self, seat: Seat) -> int:
        return seat.score(self.requests, self.counted, self.newer)

    def _possible(self, seat: Seat) -> bool:
        hard = tuple(each for each in seat.taints if each.effect != PREFER_NO_SCHEDULE)
        return not untolerated(hard, self.shape.tolerations) and meets_one(self._asked, seat.known)


class _Run:
    """One set of nodes being filled. `seats` by number, which other runs may share; `filled`: the number of the seat of
    each pod, as they were bound."""

    def __init__(
        self, scheduler: Scheduler, seats: Sequence[Seat | None], company: Company, new: int, habit: Habit
    ) -> None:
        """`new`: the number of the first new node."""
        self._scheduler = scheduler
        self._seats = list(seats)
        self._new = new
        self.habit = habit
        self.company = company
        self.filled: list[int] = []
        self.touches = 0
        self._waiters: dict[int, _Waiters] = {}

    def run(self, pods: Sequence[PendingPod], most: float, spare: float) -> Bound | None:
        """None if it takes more touches than `most`, or more pods than `spare` are left over for good."""
        found: dict[str, str] = {}
        waiting, lost = pods, 0
        before = len(waiting) + 1
        while len(waiting) < before:
            before, queue, waiting = len(waiting), waiting, []
            for pod in queue:
                wanted = self._scheduler.class_of(pod, self.habit.newer)
                number = self._of(wanted).best()
                if number is None:
                    waiting.append(pod)
                    lost += before == len(pods) and not self._scheduler.may_find_later(wanted.pair)
                else:
                    found[pod.uid] = self.seat(number).name
                if self.touches > most or lost > spare:
                    return None
        return Bound(found, tuple(sorted(each.uid for each in waiting)))

    def seat(self, number: int) -> Seat:
        found = self._seats[number]
        assert found is not None  # nodes that leave are no places
        return found

    def bind(self, number: int, wanted: _Class) -> None:
        seat = self.seat(number)
        if not seat.version:
            seat = self._seats[number] = seat.fresh()
        seat.bind(wanted.shape, wanted.requests, wanted.counted, wanted.volumes)
        self.company.bound(wanted.pair, number)
        self.filled.append(number)

    def old(self, wanted: _Class) -> list[Placed]:
        return [each for each in wanted.old if self._seats[each[1]] is not None]

    def new(self, wanted: _Class) -> list[Placed]:
        numbers = range(self._new, len(self._seats))
        return [(place, n) for n in numbers if (place := wanted.place(self.seat(n))) is not None]

    def untouched(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of nodes that are there and that nothing has been bound to."""
        seats = self._seats
        return [each for each in entries if (seat := seats[each[2]]) is not None and not seat.version]

    def _of(self, wanted: _Class) -> _Waiters:
        found = self._waiters.get(wanted.number)
        if found is None:
            found = self._waiters[wanted.number] = _Waiters(self, wanted)
        return found


class _Waiters:
    """The pods of one class in one run: the nodes that may be feasible by score, best first; entries of a node that has
    been filled since are stale, and a new one is there."""

    def __init__(self, run: _Run, wanted: _Class) -> None:
        self._run = run
        self._wanted = wanted
        new = run.new(wanted)
        if wanted.indifferent and not _tell_apart(new):
            self._fixed = {**wanted.fixed, **dict.fromkeys((number for _, number in new), INDIFFERENT)}
            self._heap = run.untouched(wanted.ranked(run.habit))
            self._heap += [self._entry(number) for number in dict.fromkeys(run.filled) if number in wanted.fixed]
        else:
            places = [*run.old(wanted), *new]
            self._fixed = dict(zip((n for _, n in places), _fixed_scores([p for p, _ in places]), strict=True))
            self._heap = [self._first(place[2], number) for place, number in run.old(wanted)]
        self._heap += [self._first(place[2], number) for place, number in new]
        heapify(self._heap)
        self._read = len(run.filled)
        self._tastes = run.company.tastes(wanted.pair)
        run.touches += len(self._heap)

    def best(self) -> int | None:
        """Bind one pod: the number of its seat."""
        filled, wanted = self._run.filled, self._wanted
        for number in sorted(frozenset(filled[self._read :])):
            if number in self._fixed:
                heappush(self._heap, self._entry(number))
        self._run.touches += 1
        feasible, refused = self._feasible()
        for entry in (*feasible, *refused):
            heappush(self._heap, entry)
        self._read = len(filled)
        if not feasible:
            return None
        number = self._preferred(feasible)
        self._run.bind(number, wanted)
        return number

    def _first(self, score: int, number: int) -> Entry:
        """`score`: of the node while nothing has been bound to it."""
        seat = self._run.seat(number)
        return (
            (-self._fixed[number] - score, self._run.habit.rank(number), number, 0)
            if not seat.version
            else self._entry(number)
        )

    def _entry(self, number: int) -> Entry:
        seat = self._run.seat(number)
        score = -self._fixed[number] - self._wanted.score(seat)
        return score, self._run.habit.rank(number), number, seat.version

    def _feasible(self) -> tuple[list[Entry], list[Entry]]:
        """The first feasible node, or all where pods around matter to the choice; and those before that their company
        does not allow. Those that are stale or too full are dropped: nodes only fill up."""
        feasible: list[Entry] = []
        refused: list[Entry] = []
        run, wanted = self._run, self._wanted
        while self._heap and (self._tastes or not feasible):
            entry = heappop(self._heap)
            seat = run.seat(entry[2])
            run.touches += 1
            if entry[3] != seat.version or not seat.holds(wanted.shape, wanted.requests, wanted.volumes):
                continue
            (feasible if run.company.allows(wanted.pair, entry[2]) else refused).append(entry)
        return feasible, refused

    def _preferred(self, feasible: Sequence[Entry]) -> int:
        if not self._tastes:
            return feasible[0][2]
        self._run.touches += len(feasible) * self._tastes // TASTES_A_TOUCH
        taste = self._run.company.taste(self._wanted.pair, [each[2] for each in feasible])
        return min((entry[0] - liked, *entry[1:3]) for entry, liked in zip(feasible, taste, strict=True))[2]


def _place(number: int, seat: Seat) -> Place:
    return Place(number, seat.labels, seat.known, seat.name, seat.taints, seat.kind)


def _tell_apart(places: Iterable[Placed]) -> bool:
    """Whether pods like some of these nodes better, or soft taints repel them from some."""
    return any(liked or shunned for (liked, shunned, _), _ in places)


def _fixed_scores(places: Sequence[Liking]) -> list[float]:
    """Preferred node affinity and soft taints, each brought to 0…100 over the feasible nodes."""
    most = max((liked for liked, _, _ in places), default=0)
    worst = max((shunned for _, shunned, _ in places), default=0)
    return [
        NODE_AFFINITY * (100 * a / most if most else 0) + TAINT_TOLERATION * (100 - 100 * b / worst if worst else 100)
        for a, b, _ in places
    ]
