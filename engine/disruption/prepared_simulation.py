"""What-ifs about one cluster, prepared: the plans of `what_if`, with everything compiled once that does not depend on
which nodes go."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.cluster import (
    Cluster,
    ClusterNode,
    bound,
    is_pending,
    moving_pods,
    noticed,
    wanting,
    what_if,
)
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import CompiledProblem, PodQueue
from kerf.engine.scheduling.problem.problem import BoundPod, PendingPod


class Answer(Struct, frozen=True):
    """A plan and what was looked at for it: how many nodes, and how many pods where they are."""

    planned: Plan
    asked: tuple[PendingPod, ...]
    nodes: int
    bound: int


class _Leaver(Struct, frozen=True):
    """The pods of one node that move if it goes: as they are asked about, and as they counted until then."""

    asked: tuple[PendingPod, ...]
    line: PodQueue
    bound: tuple[BoundPod, ...]


class PreparedSimulations:
    """Of one cluster; `settling` as in `what_if`. Topology, pod classes and templates are shared by all questions: pods
    are counted where they are, and those that move are taken out of the counts for their question."""

    def __init__(self, cluster: Cluster, *, consolidating: bool) -> None:
        still = what_if(cluster, frozenset(), respect_settling=consolidating)
        self._cluster = cluster
        self._free = still.pods
        self._shapes = still.shapes
        plain = frozenset(
            node.name for node, place in zip(_places(cluster), still.nodes, strict=True) if place is node.place
        )
        self._places = {node.name: node for node in _places(cluster)}
        self._settling = self._places.keys() - plain
        _, gone = moving_pods(cluster, frozenset())
        self._bound = bound(cluster.nodes, frozenset(pod.uid for pod in gone))
        self._leavers: dict[str, _Leaver] = {}
        self._usage = {pool_input.pool.name: pool_input.usage for pool_input in still.pools}
        there = {(each.namespace, each.shape) for each in self._bound}
        pairs = {(namespace, shape): PendingPod("", namespace, "", shape) for namespace, shape in there}
        pairs |= {(pod.namespace, pod.shape): pod for pod in still.pods}
        self._ground = CompiledProblem(
            replace(still, pods=tuple(each for _, each in sorted(pairs.items())), bound=tuple(self._bound))
        )
        self._numbers = {each.name: each.number for each in self._ground.nodes}
        self._counted = self._ground.topology.counted()
        self._free_line = self._ground.queue_of(self._free)
        self._within = self._limits({})

    def plan(self, leaving: frozenset[str], most_claims: float) -> Answer | None:
        """The plan with these nodes gone; None if it has to be asked from the beginning: some of them were no places or
        are settling, or have pods that may go where others are, or the limits leave other types without them, or
        nothing else keeps a domain known in which they are (S-129)."""
        if not leaving <= self._places.keys() or self._settling & leaving:
            return None
        going = [self._places[name] for name in sorted(leaving)]
        if self._settling and any(is_pending(pod) for node in going for pod in node.pods):
            return None
        if self._limits(self._freed(going)) != self._within or not self._ground.topology.keeps_domains(leaving):
            return None
        leavers = [self._leaver(node) for node in going]
        asked = tuple(pod for one in leavers for pod in one.asked) + self._free
        topology = self._ground.topology
        topology.restart(self._counted)
        for leaver in leavers:
            topology.count(leaver.bound, self._shapes, -1)
        nodes = list(self._ground.nodes)
        for node in going:
            nodes[self._numbers[node.name]] = nodes[self._numbers[node.name]].gone()
        lines = [*(leaver.line for leaver in leavers), self._free_line]
        planned = self._ground.plan(lines, nodes, None, most_claims)
        seen = noticed(self._cluster, (self._shapes[pod.shape] for pod in asked))
        counted = len(self._bound) - sum(len(leaver.bound) for leaver in leavers) if seen else 0
        return Answer(planned, asked, len(nodes) - len(going), counted)

    def _leaver(self, node: ClusterNode) -> _Leaver:
        found = self._leavers.get(node.name)
        if found is None:
            rules = self._cluster.rules
            pods = [pod for pod in node.pods if rules.moves(pod)]
            asked = tuple(wanting(pod, pod.shape, {}, None) for pod in pods)
            found = self._leavers[node.name] = _Leaver(
                asked, self._ground.queue_of(asked), tuple(bound([replace(node, pods=tuple(pods))], frozenset()))
            )
        return found

    def _freed(self, going: Iterable[ClusterNode]) -> dict[str, Resources]:
        """What the NodePools that are limited use less of with these nodes gone."""
        limited = {template.name for template in self._ground.templates if template.pool.limits}
        freed: dict[str, Resources] = {}
        for node in going:
            if node.node_pool in limited:
                freed[node.node_pool] = added(freed.get(node.node_pool, {}), {**node.capacity, "nodes": 1})
        return freed

    def _limits(self, freed: dict[str, Resources]) -> list[int]:
        """The types that the limits leave of each template, which starts from there."""
        for template in self._ground.templates:
            template.restart(added(self._usage[template.name], freed.get(template.name, {}), -1))
        return [template.within_limits(template.types) for template in self._ground.templates]


def suited(cluster: Cluster) -> bool:
    """Whether prepared questions give the same plans: devices are allocated for each plan anew, and which pods others
    seek to be with depends on who asks."""
    return cluster.base.devices is None and not any(shape.affinity for shape in cluster.shapes.values())


def _places(cluster: Cluster) -> list[ClusterNode]:
    return [node for node in cluster.nodes if node.tracked and not node.marked]
