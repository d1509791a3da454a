"""Prepared simulations: the plans of `what_if` for one cluster, with everything compiled once that does not depend on
which nodes go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.cluster import (
    Cluster,
    ClusterNode,
    bound,
    is_pending,
    pending_pod_of,
    positions_matter,
    what_if,
)
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import CompiledProblem, PodQueue
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import BoundPod, PendingPod, PoolInput
from kerf.engine.scheduling.topology.topology import Share, first_pods

MAX_GROUNDS = 8
"""How many more times everything is compiled, for nodes without which limits leave other types."""

FEW_NODES = 32
"""A pod that more nodes than this take is not looked at where pods are sought that no other node takes."""


class Answer(Struct, frozen=True):
    """A plan, the pods that it is about, and how many nodes and bound pods were looked at."""

    planned: Plan
    asked: tuple[PendingPod, ...]
    nodes: int
    bound: int


class _Leaver(Struct, frozen=True):
    """The pods of one node that move if it goes: as pods to place, and what they are of the counts where they are.

    `bound`: how many count where they are. `seen`: it can matter to one of them where other pods are."""

    asked: tuple[PendingPod, ...]
    line: PodQueue
    bound: int
    shares: tuple[Share, ...]
    seen: bool


class PreparedSimulations:
    """Simulations of one cluster, with `consolidating` as in `Simulator.without`.

    Topology, pod classes and templates are shared by all of them. Pods are counted where they are; those that move are
    taken out of the counts for the one simulation.
    """

    def __init__(self, cluster: Cluster, *, consolidating: bool, freed: Mapping[str, Resources] = {}) -> None:
        """`freed`: what the NodePools use less (by their names), so that their limits leave more."""
        still = what_if(cluster, frozenset(), respect_settling=consolidating)
        self._consolidating = consolidating
        self._cluster = cluster
        self._free = still.pods
        self._shapes = still.shapes
        plain = frozenset(
            node.name for node, place in zip(_places(cluster), still.nodes, strict=True) if place is node.place
        )
        self._places = {node.name: node for node in _places(cluster)}
        self._settling = self._places.keys() - plain
        leaving = frozenset(pod.uid for pod in cluster.displaced)
        self._bound = still.bound or tuple(bound(cluster.nodes, leaving))
        self._leavers: dict[str, _Leaver] = {}
        self._usage = {pool_input.pool.name: pool_input.usage for pool_input in still.pools}
        pools = tuple(_with_freed(pool_input, freed) for pool_input in still.pools)
        staying = (node.first_of_kinds for node in cluster.nodes if not node.marked)
        staying_of_marked = bound([node for node in cluster.nodes if node.marked], leaving)
        movable: list[PendingPod | BoundPod] = [*still.pods, *chain.from_iterable(staying), *staying_of_marked]
        kinds = first_pods(((pod.namespace, pod.shape), pod) for pod in movable)
        pods = tuple(PendingPod(pod.uid, pod.namespace, pod.name, pod.shape) for pod in kinds.values())
        self._ground = CompiledProblem(replace(still, pods=pods, bound=self._bound, pools=pools))
        self._numbers = {node.name: node.number for node in self._ground.nodes}
        self._counted = self._ground.topology.counted()
        self._free_line = self._ground.queue_of(self._free)
        self._free_seen = self._seen(self._free)
        self._limited = {each.name: tuple(each.pool.limits) for each in self._ground.templates if each.pool.limits}
        self._within = self._limits(freed)
        self._choosy_pods: dict[str, list[tuple[PendingPod, frozenset[str]]] | None] = {}  # by node
        self._takers_of: dict[int, frozenset[str] | None] = {}  # by class
        self._others: dict[tuple[int, ...], PreparedSimulations] = {}  # by the types that limits leave

    def plan(
        self,
        leaving: frozenset[str],
        most_claims: float,
        affordable: Mapping[str, int] | None = None,
        first_pool: str = "",
    ) -> Answer | None:
        """The plan with these nodes gone. `most_claims`, `affordable`: as in `planner.plan`. `first_pool`: as in
        `Problem`. None if it has to be made from the beginning, because:

        some nodes are no places or are settling; or they have pods that may go where others are; or nothing else keeps
        a domain known in which they are (S-129); or the limits leave other types too often.
        """
        going = self._going(leaving)
        if going is None:
            return None
        if self._limited:
            freed = self._freed(going)
            within = self._limits(freed)
            if within != self._within:
                other = self._other(within, freed)
                return None if other is None else other.plan(leaving, most_claims, affordable, first_pool)
        if not self._ground.topology.keeps_domains(leaving):
            return None
        leavers = [self._leaver(node) for node in going]
        asked = tuple(pod for one in leavers for pod in one.asked) + self._free
        self._ground.topology.restart(self._counted, chain.from_iterable(leaver.shares for leaver in leavers))
        nodes = list(self._ground.nodes)
        for node in going:
            nodes[self._numbers[node.name]] = nodes[self._numbers[node.name]].gone()
        lines = [*(leaver.line for leaver in leavers), self._free_line]
        planned = self._ground.plan(
            lines, nodes, None, most_claims, told=False, affordable=affordable, first_pool=first_pool
        )
        seen = self._free_seen or any(leaver.seen for leaver in leavers)
        counted = len(self._bound) - sum(leaver.bound for leaver in leavers) if seen else 0
        return Answer(planned, asked, len(nodes) - len(going), counted)

    def _leaver(self, node: ClusterNode) -> _Leaver:
        found = self._leavers.get(node.name)
        if found is None:
            pods = self._cluster.moving(node)
            asked = tuple(pending_pod_of(pod, pod.shape, {}, None) for pod in pods)
            moving = {pod.uid for pod in pods}
            counted = [pod for pod in node.bound if pod.uid in moving]
            shares = self._ground.topology.shares(counted, self._shapes)
            line = self._ground.queue_of(asked)
            line.queue.sort(key=itemgetter(0))  # which is done again for each plan, of all nodes that go
            found = self._leavers[node.name] = _Leaver(asked, line, len(counted), shares, self._seen(asked))
        return found

    def _seen(self, pods: Iterable[PendingPod]) -> bool:
        """Whether it can matter to one of these pods where other pods are."""
        return positions_matter(self._cluster, (self._shapes[pod.shape] for pod in pods))

    def homeless(self, names: Sequence[str]) -> list[PendingPod] | None:
        """The pods of these nodes that no other node takes. None if it is not known, for the first two reasons of
        `plan`."""
        choosy = []
        for name in names:
            pods = self._choosy_pods[name] if name in self._choosy_pods else self._choosy(name)
            if pods is None:
                return None
            choosy += pods
        leaving = frozenset(names) if choosy else frozenset()
        return [pod for pod, takers in choosy if takers <= leaving]

    def _choosy(self, name: str) -> list[tuple[PendingPod, frozenset[str]]] | None:
        """The pods of a node that few nodes take, each with these nodes."""
        found: list[tuple[PendingPod, frozenset[str]]] | None = None
        if (going := self._going(frozenset([name]))) is not None:
            line = self._leaver(going[0]).line.queue
            pods = ((pod, self._takers(pod_class)) for _, (pod, pod_class) in line)
            found = [(pod, takers) for pod, takers in pods if takers is not None]
        self._choosy_pods[name] = found
        return found

    def _takers(self, pod_class: PodClass) -> frozenset[str] | None:
        if pod_class.number not in self._takers_of:
            self._takers_of[pod_class.number] = self._ground.takers(pod_class, FEW_NODES)
        return self._takers_of[pod_class.number]

    def _going(self, leaving: frozenset[str]) -> list[ClusterNode] | None:
        if not leaving <= self._places.keys() or self._settling & leaving:
            return None
        going = [self._places[name] for name in sorted(leaving)]
        pending = self._settling and any(is_pending(pod) for node in going for pod in node.pods)
        return None if pending else going

    def _other(self, within: tuple[int, ...], freed: Mapping[str, Resources]) -> PreparedSimulations | None:
        """The simulations where the limits leave these types. None if there are too many."""
        other = self._others.get(within)
        if other is None and len(self._others) < MAX_GROUNDS:
            other = PreparedSimulations(self._cluster, consolidating=self._consolidating, freed=freed)
            self._others[within] = other
        return other

    def _freed(self, going: Iterable[ClusterNode]) -> dict[str, Resources]:
        """What NodePools with limits use less of what they limit with these nodes gone."""
        freed: dict[str, Resources] = {}
        for node in going:
            for name in self._limited.get(node.node_pool, ()):
                less = freed.setdefault(node.node_pool, {})
                less[name] = less.get(name, 0) + (1 if name == NODES_LIMIT else node.capacity.get(name, 0))
        return freed

    def _limits(self, freed: Mapping[str, Resources]) -> tuple[int, ...]:
        """The types of each template that the NodePool's limits leave; the templates start from there."""
        for template in self._ground.templates:
            template.restart(added(self._usage[template.name], freed.get(template.name, {}), -1))
        return tuple(template.within_limits(template.types) for template in self._ground.templates)


def _with_freed(pool_input: PoolInput, freed: Mapping[str, Resources]) -> PoolInput:
    less = freed.get(pool_input.pool.name)
    return pool_input if less is None else replace(pool_input, usage=added(pool_input.usage, less, -1))


def suited(cluster: Cluster) -> bool:
    """Whether prepared simulations give the same plans. They do not where devices are allocated, which is done anew for
    each plan, or where pods have affinity, for whom they seek depends on who asks."""
    return cluster.base.devices is None and not any(shape.affinity for shape in cluster.shapes.values())


def _places(cluster: Cluster) -> list[ClusterNode]:
    return [node for node in cluster.nodes if node.tracked and not node.marked]
