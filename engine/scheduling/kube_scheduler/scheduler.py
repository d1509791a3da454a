"""The model of kube-scheduler: which node it would bind each pod to, knowing nothing of the plan.

Pods come in the order of the scheduling queue (priority, then age). Each goes to the feasible node with the highest
score. Pods that found no node are tried again as long as others are bound. Modelled with their default weights are the
filters NodeResourcesFit, NodePorts, NodeAffinity, TaintToleration, volumes (zones and limits), PodTopologySpread and
InterPodAffinity, and the scores of all of these but ports and volumes, with balanced allocation.

A search asks about many sets of new nodes beside the same existing ones. So what does not depend on the new nodes is
computed once per problem, and what depends on a kind of new node once per kind.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from msgspec import Struct

from kerf.engine.scheduling.kube_scheduler.equivalence_classes import EquivalenceClass, EquivalenceClasses
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, existing_node, planned_node
from kerf.engine.scheduling.kube_scheduler.node_usage import NodeUsages
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import DEFAULT_VARIANT, SchedulerVariant
from kerf.engine.scheduling.kube_scheduler.scheduling_run import NodesOfKind, RunNodes, SchedulingRun
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import PendingPod, Problem, ShapeKey

SELECTIONS_PER_TOUCH = 8
"""Comparing this many pods with a selector costs one touch of effort."""
TOUCHES_PER_NODE = 10
"""Looking at an existing node for the first time costs this many touches of effort."""

ClassedQueue = list[tuple[PendingPod, EquivalenceClass]]
"""Pods in the order of the queue, with their classes."""
NodesBeside = tuple[InterpodCounts, list[NodesOfKind]]
"""The counts on all nodes, existing and new, with the pods that are bound already; and the new nodes by kind."""


class Bindings(Struct, frozen=True):
    """What the scheduler does with some pods, all by uid: the node (by name) of each bound pod, and the pods that
    found none."""

    node_of: dict[str, str]
    unbound: tuple[str, ...]


def unbound_pods(problem: Problem, plan: Plan, variant: SchedulerVariant = DEFAULT_VARIANT) -> tuple[str, ...]:
    """The uids of the pods that have a place in the plan and for which such a scheduler would find no node."""
    daemon_sets = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
    nodes = [
        planned_node(new_node_name(number), claim, daemon_sets, problem) for number, claim in enumerate(plan.claims)
    ]
    bindings, _ = KubeScheduler(problem).bind(nodes, plan.placed, variant=variant, others=True)
    assert bindings is not None  # the touches are not limited
    return bindings.unbound


def new_node_name(number: int) -> str:
    """The name of the node of a planned claim, by the number of the claim in its plan."""
    return f"~new-{number:06d}"


class KubeScheduler:
    """The scheduler before the existing nodes of one problem, to be asked about several sets of new nodes.

    Nodes go by number: the existing ones (`existing`, by name), those that are leaving, the new ones.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        daemon_sets = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        existing = (existing_node(node, daemon_sets, problem) for node in problem.nodes)
        self.existing = sorted(existing, key=lambda node: node.name)
        leaving = [existing_node(node, daemon_sets, problem) for node in problem.leaving]
        self._nodes = [*self.existing, *leaving]
        self._rules = InterpodRules(problem)
        self._counts = InterpodCounts(problem, self._rules, self._nodes)
        self._classes = EquivalenceClasses(problem, self._rules, self.existing)
        self._usages = NodeUsages(self._nodes)
        self._queues: dict[SchedulerVariant, list[PendingPod]] = {}
        self._classed_queues: dict[SchedulerVariant, ClassedQueue] = {}
        self._ranks: dict[SchedulerVariant, list[int]] = {}
        self._last: tuple[object, NodesBeside] = (None, (self._counts, []))

    def bind(
        self,
        new: Sequence[NodeInfo],
        uids: frozenset[str],
        max_touches: float = math.inf,
        variant: SchedulerVariant = DEFAULT_VARIANT,
        max_unbound: float = math.inf,
        others: bool = False,
        told: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[Bindings | None, int]:
        """Bind the pods with these uids to the existing and the `new` nodes; also say what it cost, in touches.

        The bindings are None if that took more than `max_touches`, or once more pods than `max_unbound` are certain to
        find no node. `others`: all waiting pods come to the scheduler, also those without a place in the plan, and may
        take room. `told`: pods (uids) that are told a node (by name), and hold their room there.
        """
        run = self._new_run(new, frozenset(), variant)
        numbers = {**self._numbers, **{node.name: n for n, node in enumerate(new, len(self._nodes))}} if told else {}
        queue = []
        for queued in self._classed_queue(variant):
            uid = queued[0].uid
            if uid in told:
                run.bind_to(queued[1], numbers[told[uid]])
            elif uid in uids or (others and not queued[0].virtual):
                queue.append(queued)
        alone = len(queue) + len(told) == len(uids)
        bindings = self._run(run, queue, new, max_touches, max_unbound if alone else math.inf)
        if bindings is not None:
            bindings = Bindings({**told, **bindings.node_of}, bindings.unbound)
        return bindings if alone else bindings and self._credited_to(bindings, uids), run.touches

    def _credited_to(self, bindings: Bindings, uids: frozenset[str]) -> Bindings:
        """The bindings of these pods alone. One that found no node is given the node of another pod like it that is
        none of these: which of two equal pods waits does not matter."""
        spare: dict[ShapeKey, list[str]] = defaultdict(list)
        for uid, node in bindings.node_of.items():
            if uid not in uids:
                spare[self._shape_keys[uid]].append(node)
        node_of = {uid: node for uid, node in bindings.node_of.items() if uid in uids}
        unbound = []
        for uid in bindings.unbound:
            if uid in uids and spare[self._shape_keys[uid]]:
                node_of[uid] = spare[self._shape_keys[uid]].pop()
            elif uid in uids:
                unbound.append(uid)
        return Bindings(node_of, tuple(unbound))

    def rebind(
        self,
        new: Sequence[NodeInfo],
        queue: Sequence[PendingPod],
        gone: frozenset[str],
        moved: Iterable[tuple[ShapeKey, str]],
        variant: SchedulerVariant = DEFAULT_VARIANT,
    ) -> Bindings:
        """Bind these pods, in this order, to the existing nodes that are not `gone` (by name) and to the new ones.

        `moved`: pods that the problem has bound to nodes of these names, and that are there no more.
        """
        run = self._new_run(new, gone, variant)
        for shape_key, name in moved:
            run.counts.remove_pod(shape_key, self._numbers[name])
        bindings = self._run(run, [(pod, self._classes.of(pod, variant.newer)) for pod in queue], new)
        assert bindings is not None  # the touches are not limited
        return bindings

    def _run(
        self,
        run: SchedulingRun,
        pods: ClassedQueue,
        new: Sequence[NodeInfo],
        max_touches: float = math.inf,
        max_unbound: float = math.inf,
    ) -> Bindings | None:
        """Bind the pods in their order, and those that found no node again, as long as others are bound."""
        node_of: dict[str, str] = {}
        waiting, lost = pods, 0
        before = len(waiting) + 1
        while len(waiting) < before:
            before, queue, waiting = len(waiting), waiting, []
            for pod, pod_class in queue:
                number = run.bind(pod_class)
                if number is None:
                    waiting.append((pod, pod_class))
                    lost += before == len(pods) and not self._rules.by_shape[pod_class.shape_key].may_be_met_later
                else:
                    node_of[pod.uid] = self._name(number, new)
                if run.touches > max_touches or lost > max_unbound:
                    return None
        return Bindings(node_of, tuple(sorted(pod.uid for pod, _ in waiting)))

    def _name(self, number: int, new: Sequence[NodeInfo]) -> str:
        before = len(self._nodes)
        return self._nodes[number].name if number < before else new[number - before].name

    def _new_run(self, new: Sequence[NodeInfo], gone: frozenset[str], variant: SchedulerVariant) -> SchedulingRun:
        counts, by_kind = self._beside(new)
        nodes = RunNodes(new, by_kind, frozenset(self._numbers[name] for name in gone if name in self._numbers))
        ranks = self._ranks_of(variant, len(self._nodes) + len(new))
        return SchedulingRun(self._usages.trimmed(), nodes, counts.copy(), variant, ranks)

    def _beside(self, new: Sequence[NodeInfo]) -> NodesBeside:
        """Remembered for the last set of new nodes, because one variant after another is asked about it."""
        kinds, names = tuple([node.kind for node in new]), tuple([node.name for node in new])
        if (kinds, names) != self._last[0] or -1 in kinds:
            by_kind = _by_kind(new, len(self._nodes))
            self._last = (kinds, names), (self._counts.with_nodes(new), by_kind)
        return self._last[1]

    def _ranks_of(self, variant: SchedulerVariant, nodes: int) -> Sequence[int]:
        ranks = self._ranks.setdefault(variant, [])
        ranks += [variant.tie_rank(number) for number in range(len(ranks), nodes)]
        return ranks

    @cached_property
    def _shape_keys(self) -> dict[str, ShapeKey]:
        return {pod.uid: pod.shape_key for pod in self._problem.pods}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {node.name: number for number, node in enumerate(self._nodes)}

    def queue(self, variant: SchedulerVariant) -> list[PendingPod]:
        """All waiting pods, in the order in which they come to such a scheduler."""
        queue = self._queues.get(variant)
        if queue is None:
            shapes = self._problem.shapes
            queue = sorted(self._problem.pods, key=lambda pod: variant.queue_key(pod, shapes[pod.shape].priority))
            self._queues[variant] = queue
        return queue

    def _classed_queue(self, variant: SchedulerVariant) -> ClassedQueue:
        queue = self._classed_queues.get(variant)
        if queue is None:
            queue = [(pod, self._classes.of(pod, variant.newer)) for pod in self.queue(variant)]
            self._classed_queues[variant] = queue
        return queue

    def class_of(self, pod: PendingPod, newer: bool) -> EquivalenceClass:
        """The class of a pod for a scheduler that is `newer` or not (see `SchedulerVariant`)."""
        return self._classes.of(pod, newer)


def setup_touches(problem: Problem) -> int:
    """What it costs at most to make a `KubeScheduler` for a problem, in touches of effort."""
    waiting = problem.pods_of_kind.keys()
    present = waiting | {pod.shape_key for pod in problem.bound}
    shapes = [problem.shapes[digest] for _, digest in present]
    terms = sum(len(shape.spread) + len(shape.affinity) + len(shape.anti_affinity) for shape in shapes)
    nodes = len(problem.nodes) + len(problem.leaving)
    return len(present) * terms // SELECTIONS_PER_TOUCH + nodes * (TOUCHES_PER_NODE + len(waiting)) + len(problem.bound)


def _by_kind(new: Sequence[NodeInfo], first_number: int) -> list[NodesOfKind]:
    """The new nodes by kind, with their numbers, which begin at `first_number`."""
    kinds: dict[int, tuple[NodeInfo, list[int]]] = {}
    for number, node in enumerate(new, start=first_number):
        kind = node.kind if node.kind >= 0 else -number - 1
        kinds.setdefault(kind, (node, []))[1].append(number)
    return list(kinds.values())
