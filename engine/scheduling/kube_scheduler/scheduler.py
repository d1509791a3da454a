"""What the cluster's scheduler would make of a plan: it does not know it, and binds pods in its own order.

The pods are bound one by one in the order of its queue (priority, then age), each to the feasible node with the highest
score, and those that found no place are tried again as long as others do. Modelled are the filters on resources,
taints, node affinity, host ports and volumes (zones and limits), and the scores for least and for balanced allocation,
preferred node affinity and PreferNoSchedule taints, with kube-scheduler's default weights; equal scores go to the first
name. What pods demand of one another, filters and scores, is asked of `company`; what is not known of the scheduler is
a `SchedulerVariant`.

A search rates many sets of new nodes beside the same old ones, so whatever does not depend on the new ones is made once
per problem, and what depends on a kind of node once per kind.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from kerf.engine.scheduling.kube_scheduler.equivalence_classes import EquivalenceClass, EquivalenceClasses
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules, ShapeKey, TopologyNode
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, existing_node, planned_node
from kerf.engine.scheduling.kube_scheduler.node_usage import NodeUsages
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import DEFAULT_VARIANT, SchedulerVariant
from kerf.engine.scheduling.kube_scheduler.scheduling_run import NodesOfKind, RunNodes, SchedulingRun
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import PendingPod, Problem

SELECTIONS_PER_TOUCH = 8
"""For the cost of a touch so many pods are compared with a selector."""
TOUCHES_PER_NODE = 10
"""What it costs to look at an old node for the first time."""

ClassedQueue = list[tuple[PendingPod, EquivalenceClass]]
"""Pods as the scheduler comes to them."""
NodesBeside = tuple[InterpodCounts, list[NodesOfKind]]
"""All nodes with the pods that are bound already, and the new ones by kind."""


class Bindings(Struct, frozen=True):
    """What the scheduler makes of it: the seat of each pod (by uid), and the pods (uids) that are left over."""

    seats: dict[str, str]
    left: tuple[str, ...]


def unbound_pods(problem: Problem, made: Plan, habit: SchedulerVariant = DEFAULT_VARIANT) -> tuple[str, ...]:
    """The uids of the pods that have a place in the plan and that a scheduler of this habit would find none for."""
    given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
    seats = [planned_node(new_node_name(number), each, given, problem) for number, each in enumerate(made.claims)]
    found, _ = KubeScheduler(problem).bound(seats, made.placed, habit=habit, others=True)
    assert found is not None  # there is no end to the effort
    return found.left


def new_node_name(number: int) -> str:
    """The name of the node of a planned claim, in its order."""
    return f"~new-{number:06d}"


class KubeScheduler:
    """The scheduler before the old nodes of a problem, which is asked about several sets of new ones. Numbers of nodes:
    the old ones, those that leave, the new ones."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        self.old = sorted((existing_node(each, given, problem) for each in problem.nodes), key=lambda each: each.name)
        leaving = [existing_node(each, given, problem) for each in problem.leaving]
        self._places = [_topology_node(number, each) for number, each in enumerate([*self.old, *leaving])]
        self._manners = InterpodRules(problem)
        self._company = InterpodCounts(problem, self._manners, self._places)
        self._classes = EquivalenceClasses(problem, self._manners, self.old)
        self._rooms = NodeUsages([*self.old, *leaving])
        self._queues: dict[SchedulerVariant, list[PendingPod]] = {}
        self._classed: dict[SchedulerVariant, ClassedQueue] = {}
        self._ranks: dict[SchedulerVariant, list[int]] = {}
        self._last: tuple[object, NodesBeside] = (None, (self._company, []))

    def bound(
        self,
        new: Sequence[NodeInfo],
        uids: frozenset[str],
        most: float = math.inf,
        habit: SchedulerVariant = DEFAULT_VARIANT,
        spare: float = math.inf,
        others: bool = False,
    ) -> tuple[Bindings | None, int]:
        """These pods bound to the old nodes and to these, which fill up with them, and how often a node was looked at
        for a pod; None when that was more than `most`, or when it is known that more pods than `spare` are left over.
        `others`: all that wait come to the scheduler, also those that a plan has no place for, and may take one."""
        run = self._on(new, frozenset(), habit)
        queue = [each for each in self._queue(habit) if each[0].uid in uids or (others and not each[0].virtual)]
        if len(queue) == len(uids):
            return self._run(run, queue, new, most, spare), run.touches
        found = self._run(run, queue, new, most)
        return found and self._meant(found, uids), run.touches

    def _meant(self, made: Bindings, uids: frozenset[str]) -> Bindings:
        """What becomes of these pods; one that is left over has the place of another that is like it."""
        places: dict[ShapeKey, list[str]] = defaultdict(list)
        for uid, seat in made.seats.items():
            if uid not in uids:
                places[self._pairs[uid]].append(seat)
        seats = {uid: seat for uid, seat in made.seats.items() if uid in uids}
        left = []
        for uid in made.left:
            if uid in uids and places[self._pairs[uid]]:
                seats[uid] = places[self._pairs[uid]].pop()
            elif uid in uids:
                left.append(uid)
        return Bindings(seats, tuple(left))

    def rebound(
        self,
        new: Sequence[NodeInfo],
        queue: Sequence[PendingPod],
        gone: frozenset[str],
        moved: Iterable[tuple[ShapeKey, str]],
        habit: SchedulerVariant = DEFAULT_VARIANT,
    ) -> Bindings:
        """These pods bound one by one to the old nodes but those that are gone, and to the new ones. `moved`: pods that
        are counted where they are, on nodes of these names, and are not there any more."""
        run = self._on(new, gone, habit)
        for pair, name in moved:
            run.company.left(pair, self._numbers[name])
        found = self._run(run, [(each, self._classes.of(each, habit.newer)) for each in queue], new)
        assert found is not None  # there is no end to the effort
        return found

    def _run(
        self,
        run: SchedulingRun,
        pods: ClassedQueue,
        new: Sequence[NodeInfo],
        most: float = math.inf,
        spare: float = math.inf,
    ) -> Bindings | None:
        """None if it takes more touches than `most`, or more pods than `spare` are left over for good."""
        found: dict[str, str] = {}
        waiting, lost = pods, 0
        before = len(waiting) + 1
        while len(waiting) < before:
            before, queue, waiting = len(waiting), waiting, []
            for pod, wanted in queue:
                number = run.bind(wanted)
                if number is None:
                    waiting.append((pod, wanted))
                    lost += before == len(pods) and not self._manners.demands[wanted.pair].may_be_met_later
                else:
                    found[pod.uid] = self._name(number, new)
                if run.touches > most or lost > spare:
                    return None
        return Bindings(found, tuple(sorted(pod.uid for pod, _ in waiting)))

    def _name(self, number: int, new: Sequence[NodeInfo]) -> str:
        before = len(self._places)
        return self._places[number].name if number < before else new[number - before].name

    def _on(self, new: Sequence[NodeInfo], gone: frozenset[str], habit: SchedulerVariant) -> SchedulingRun:
        company, alike = self._beside(new)
        nodes = RunNodes(new, alike, frozenset(self._numbers[name] for name in gone if name in self._numbers))
        ranks = self._ranked(habit, len(self._places) + len(new))
        return SchedulingRun(self._rooms.tidied(), nodes, company.again(), habit, ranks)

    def _beside(self, new: Sequence[NodeInfo]) -> NodesBeside:
        """Kept, for the scheduler is asked about one set of new nodes by habit after habit."""
        kinds, names = tuple([each.kind for each in new]), tuple([each.name for each in new])
        if (kinds, names) != self._last[0] or -1 in kinds:
            before = len(self._places)
            company = self._company.joined(_topology_node(before + number, each) for number, each in enumerate(new))
            self._last = (kinds, names), (company, _by_kind(new, before))
        return self._last[1]

    def _ranked(self, habit: SchedulerVariant, nodes: int) -> Sequence[int]:
        found = self._ranks.setdefault(habit, [])
        found += [habit.rank(number) for number in range(len(found), nodes)]
        return found

    @cached_property
    def _pairs(self) -> dict[str, ShapeKey]:
        return {each.uid: (each.namespace, each.shape) for each in self._problem.pods}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {each.name: each.index for each in self._places}

    def queue(self, habit: SchedulerVariant) -> list[PendingPod]:
        """All pods that wait, in the order in which a scheduler of this habit comes to them."""
        found = self._queues.get(habit)
        if found is None:
            shapes = self._problem.shapes
            found = sorted(self._problem.pods, key=lambda each: habit.turn(each, shapes[each.shape].priority))
            self._queues[habit] = found
        return found

    def _queue(self, habit: SchedulerVariant) -> ClassedQueue:
        found = self._classed.get(habit)
        if found is None:
            found = [(each, self._classes.of(each, habit.newer)) for each in self.queue(habit)]
            self._classed[habit] = found
        return found

    def class_of(self, pod: PendingPod, newer: bool) -> EquivalenceClass:
        """The class of a pod for a scheduler that is `newer` or not (see `SchedulerVariant`)."""
        return self._classes.of(pod, newer)


def setup_touches(problem: Problem) -> int:
    """What a `KubeScheduler` costs to make, in touches, at the most."""
    pairs = {(each.namespace, each.shape) for each in problem.pods}
    every = pairs | {(each.namespace, each.shape) for each in problem.bound}
    shapes = [problem.shapes[digest] for _, digest in every]
    terms = sum(len(each.spread) + len(each.affinity) + len(each.anti_affinity) for each in shapes)
    nodes = len(problem.nodes) + len(problem.leaving)
    return len(every) * terms // SELECTIONS_PER_TOUCH + nodes * (TOUCHES_PER_NODE + len(pairs)) + len(problem.bound)


def _topology_node(number: int, seat: NodeInfo) -> TopologyNode:
    return TopologyNode(number, seat.labels, seat.known, seat.name, seat.taints, seat.kind)


def _by_kind(new: Sequence[NodeInfo], before: int) -> list[NodesOfKind]:
    """The new nodes by kind; `before`: how many there are without them."""
    found: dict[int, tuple[NodeInfo, list[int]]] = {}
    for number, each in enumerate(new, start=before):
        kind = each.kind if each.kind >= 0 else -number - 1
        found.setdefault(kind, (each, []))[1].append(number)
    return list(found.values())
