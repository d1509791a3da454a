"""One run of the model of kube-scheduler: a set of nodes that fill up as pods are bound to them one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kerf.engine.scheduling.kube_scheduler.equivalence_classes import EquivalenceClass, RankedNode
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts, passes
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.node_usage import NO_ROOM, NodeUsages
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SchedulerVariant
from kerf.engine.scheduling.kube_scheduler.scores import (
    NEUTRAL_SCORE,
    ScoredNodes,
    static_scores,
    static_scores_differ,
)

POD_COUNTS_PER_TOUCH = 10
"""Reading this many counts of pods around nodes costs one touch of effort."""

NodesOfKind = tuple[NodeInfo, Sequence[int]]
"""A new node that stands for all of its kind, and their numbers."""


class RunNodes(Struct, frozen=True):
    """The nodes of one run besides the existing ones: the `new` ones, the same by kind, and the numbers of existing
    ones that are `gone`."""

    new: Sequence[NodeInfo]
    by_kind: Sequence[NodesOfKind]
    gone: frozenset[int] = frozenset()


class SchedulingRun:
    """The state of a run. Nodes go by number: first the existing ones, then the new ones.

    `bound_to`: the node of each pod, in the order of binding. `pods`: how many pods each node got. `touches`: how often
    a node was looked at for a pod, which is what the run costs of the effort.
    """

    def __init__(
        self,
        usages: NodeUsages,
        nodes: RunNodes,
        counts: InterpodCounts,
        variant: SchedulerVariant,
        ranks: Sequence[int],
    ) -> None:
        """`ranks`: of each node among equally good ones, see `SchedulerVariant.tie_rank`."""
        self._gone, self._by_kind = nodes.gone, nodes.by_kind
        self.usages = [*usages.existing, *(usages.of_new(node) for node in nodes.new)]
        self.scores_for = usages.scores_for
        self.counts = counts
        self.variant = variant
        self.ranks = ranks
        self.bound_to: list[int] = []
        self.pods = [0] * len(self.usages)
        self.touches = 0
        self._candidates: dict[EquivalenceClass, CandidateNodes] = {}

    def bind(self, pod_class: EquivalenceClass) -> int | None:
        """Bind one pod of a class: the number of its node, None if no node is feasible."""
        candidates = self._candidates.get(pod_class)
        if candidates is None:
            by_pods = self.counts.scored_counts(pod_class.shape_key)
            candidates = (ScoredByPods if by_pods else BestFirst)(self, pod_class)
            self._candidates[pod_class] = candidates
        number = candidates.best()
        if number is not None:
            self.bind_to(pod_class, number)
        return number

    def bind_to(self, pod_class: EquivalenceClass, number: int) -> None:
        """Bind one pod of a class to this node."""
        self.usages[number] = self.usages[number].after(pod_class.load)
        self.pods[number] += 1
        self.counts.add_pod(pod_class.shape_key, number)
        self.bound_to.append(number)

    def existing_nodes(self, pod_class: EquivalenceClass) -> list[ScoredNodes]:
        """The existing nodes that are feasible for the class by itself."""
        return [(scores, (number,)) for scores, number in pod_class.feasible_nodes if number not in self._gone]

    def new_nodes(self, pod_class: EquivalenceClass) -> list[ScoredNodes]:
        """The new nodes that are feasible for the class by itself."""
        return [
            (scores, numbers) for node, numbers in self._by_kind if (scores := pod_class.scores_on(node)) is not None
        ]

    def unused(self, nodes: list[RankedNode]) -> list[RankedNode]:
        """Those of the nodes that are there and that nothing has been bound to."""
        if not self._gone and not self.bound_to:
            return list(nodes)
        gone, pods = self._gone, self.pods
        return [node for node in nodes if node[2] not in gone and not pods[node[2]]]


class CandidateNodes(ABC):
    """The nodes that may be feasible for the pods of one class in one run. When a node gets a pod, its old entry is
    outdated and a new one is added."""

    def __init__(self, run: SchedulingRun, pod_class: EquivalenceClass) -> None:
        self._run = run
        self._class = pod_class
        self._resource_scores = run.scores_for(pod_class.load)
        new = run.new_nodes(pod_class)
        if pod_class.prefers_none and not static_scores_differ(scores for scores, _ in new):
            numbers = [number for _, of_kind in new for number in of_kind]
            self._static = pod_class.neutral_scores | dict.fromkeys(numbers, NEUTRAL_SCORE)
            nodes = run.unused(pod_class.ranked(run.variant))
            nodes += self._ranked([pod for pod in dict.fromkeys(run.bound_to) if pod in pod_class.neutral_scores])
            nodes += self._ranked(numbers)
        else:
            self._static = static_scores(run.existing_nodes(pod_class) + new)
            nodes = self._ranked(self._static)
        self._read = len(run.bound_to)
        run.touches += len(nodes)
        self._start(nodes)

    @abstractmethod
    def _start(self, nodes: list[RankedNode]) -> None:
        """Begin with these nodes."""

    @abstractmethod
    def best(self) -> int | None:
        """The number of the node for the next pod; None if no node is feasible."""

    def _changed(self) -> list[RankedNode]:
        """New entries for the nodes that got pods since the last call."""
        bound_to, static = self._run.bound_to, self._static
        if self._read == len(bound_to):
            return []
        numbers = dict.fromkeys(bound_to[self._read :])
        self._read = len(bound_to)
        return self._ranked([number for number in numbers if number in static])

    def _ranked(self, numbers: Iterable[int]) -> list[RankedNode]:
        static, ranks, usages, scores = self._static, self._run.ranks, self._run.usages, self._resource_scores
        return [
            (-static[number] - (score := scores[usages[number]])[0], ranks[number], number, score[1])
            for number in numbers
        ]


class BestFirst(CandidateNodes):
    """For pods to which the pods around make no node better: the first feasible node in the order of scores is it."""

    def _start(self, nodes: list[RankedNode]) -> None:
        self._order = sorted(nodes)

    def best(self) -> int | None:
        """Entries that are outdated, or of nodes without room, are dropped on the way: nodes only fill up. Nodes that
        the pods around forbid now are kept."""
        run, order = self._run, self._order
        changed = self._changed()
        for entry in changed:
            insort(order, entry)
        rules, pods = run.counts.domain_rules(self._class.shape_key), run.pods
        best, looked_at, useless = None, 0, []
        for looked_at, (_, _, number, pods_then) in enumerate(order, start=1):
            if pods_then != pods[number]:
                useless.append(looked_at - 1)
            elif passes(rules, number):
                best = number
                break
        for position in reversed(useless):
            del order[position]
        run.touches += 1 + looked_at + len(changed)
        return best


class ScoredByPods(CandidateNodes):
    """For pods to which the pods around make some nodes better: all feasible nodes are compared for each pod."""

    def _start(self, nodes: list[RankedNode]) -> None:
        self._nodes = {node[2]: node for node in nodes if node[3] != NO_ROOM}
        self._dropped = len(nodes) - len(self._nodes)

    def best(self) -> int | None:
        run, nodes, shape_key = self._run, self._nodes, self._class.shape_key
        changed = self._changed()
        run.touches += 1 + self._dropped + len(nodes) + len(changed)
        self._dropped = 0
        for node in changed:
            nodes.pop(node[2], None)
            if node[3] != NO_ROOM:
                nodes[node[2]] = node
        feasible = run.counts.feasible(shape_key, nodes)
        if not feasible:
            return None
        run.touches += len(feasible) * run.counts.scored_counts(shape_key) // POD_COUNTS_PER_TOUCH
        by_pods = run.counts.scores(shape_key, feasible)
        negated = [nodes[number][0] - score for number, score in zip(feasible, by_pods, strict=True)]
        best, ranks = min(negated), run.ranks
        equals = [(ranks[number], number) for number, score in zip(feasible, negated, strict=True) if score == best]
        return min(equals)[1]
