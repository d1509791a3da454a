"""Turns a set of new nodes into a plan again: each node becomes a problem of its own for the planner.

The pods are where kube-scheduler would bind them. The planner's answer to a node's problem is the node's claim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.kube_scheduler.scheduler import Bindings, new_node_name
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_PLAN, TOUCHES_PER_POD, TOUCHES_PER_REPEATED_POD
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets
from kerf.engine.scheduling.optimizer.partial_problems import problem_on_node, without_types
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.pods.pod_classes import RESPECT
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD
from kerf.engine.scheduling.problem.problem import PendingPod, Problem


class PlanOfNodeSet:
    """Makes the parts of plans for the node sets of one problem."""

    def __init__(self, problem: Problem, options: InstanceOptions, node_sets: NodeSets) -> None:
        self._problem = problem
        self._options = options
        self._node_sets = node_sets
        self._pods = {pod.uid: pod for pod in problem.pods}
        self._pools = {pool.pool.name: pool for pool in problem.pools}
        self._topology_keys = _topology_keys(problem)

    def placements(self, node_set: NodeSet) -> tuple[Placement, ...]:
        """The pods that are bound to existing nodes."""
        pods_on = self._pods_by_node(node_set.bindings)
        return tuple(
            Placement(node.name, node.claim, tuple(pod.uid for pod in pods_on[node.name]))
            for node in sorted(self._problem.nodes, key=lambda each: each.name)
            if node.name in pods_on
        )

    def outline(self, node_set: NodeSet) -> Plan:
        """The plan before its claims are planned again: each is what its node will be."""
        pods_on = self._pods_by_node(node_set.bindings)
        claims = []
        for number, node in enumerate(node_set.nodes):
            labels = self._node_sets.new_nodes.info(node).labels
            settled = Requirements.of_labels({key: labels[key] for key in self._topology_keys if key in labels})
            constraints = tuple(Requirements(node.claim.constraints).merged(settled))
            pods = tuple(pod.uid for pod in pods_on.get(new_node_name(number), ()))
            claims.append(replace(node.claim, pods=pods, constraints=constraints))
        return Plan(tuple(claims), self.placements(node_set))

    def planning_touches(self, node_set: NodeSet) -> int:
        """What it costs, about, to plan the problems of the nodes, in touches; equal ones are planned once."""
        shapes_on: dict[str, set[str]] = defaultdict(set)
        for uid, name in node_set.bindings.node_of.items():
            shapes_on[name].add(self._pods[uid].shape)
        distinct = {(node.kind, frozenset(shapes_on[new_node_name(n)])) for n, node in enumerate(node_set.nodes)}
        plans = sum(TOUCHES_PER_PLAN + TOUCHES_PER_POD * len(shapes) for _, shapes in distinct if shapes)
        return plans + TOUCHES_PER_REPEATED_POD * len(node_set.bindings.node_of)

    def key(self, node: NewNode, problem: Problem) -> object:
        """Equal for problems of nodes and pods that are alike but for their names; None where names matter, too."""
        if any(self._problem.shapes[self._pods[pod.uid].shape].volumes for pod in problem.pods):
            return None
        return node.kind, tuple(sorted((pod.namespace, pod.shape) for pod in problem.pods))

    def problems(self, node_set: NodeSet) -> Iterator[tuple[NewNode, Problem]]:
        """Each node that has pods, with its problem: these pods, on the node's type or a dearer one, and with the
        node's labels where other pods may look at them."""
        pods_on = self._pods_by_node(node_set.bindings)
        for number, node in enumerate(node_set.nodes):
            pods = pods_on.get(new_node_name(number))
            if pods:
                yield node, self._problem_of(node, pods)

    def _pods_by_node(self, bindings: Bindings) -> Mapping[str, list[PendingPod]]:
        pods_on: dict[str, list[PendingPod]] = {}
        for uid, name in bindings.node_of.items():
            pods_on.setdefault(name, []).append(self._pods[uid])
        return {
            name: sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid)) for name, pods in pods_on.items()
        }

    def _problem_of(self, node: NewNode, pods: Sequence[PendingPod]) -> Problem:
        claim = node.claim
        pool = self._pools[claim.node_pool]
        labels = self._node_sets.new_nodes.info(node).labels
        problem = problem_on_node(
            self._problem,
            {key: labels[key] for key in self._kept_labels(node, pods) if key in labels},
            pods,
            pool,
            node.max_counted,
        )
        types = self._problem.catalogues[pool.catalogue].types
        smaller = sorted(frozenset(instance_type.name for instance_type in types).difference(claim.instance_types))
        return replace(problem, unavailable=problem.unavailable | without_types(smaller))

    def _kept_labels(self, node: NewNode, pods: Iterable[PendingPod]) -> list[str]:
        """The labels that the claim must keep: those by which it was narrowed, and all topology keys if one of its pods
        has to do with other pods."""
        own = self._options.templates[self._options.numbers[node.claim.node_pool]].base.requirements
        narrowed = {constraint.key for constraint in node.claim.constraints if own.find(constraint.key) != constraint}
        related = any((pod.namespace, pod.shape) not in self._node_sets.independent for pod in pods)
        return sorted(narrowed.union(self._topology_keys if related else ()))


def _topology_keys(problem: Problem) -> tuple[str, ...]:
    """The labels whose domains spreads and hard rules of pods look at, without the hostname."""
    respect = problem.settings.preference_policy == RESPECT
    digests = {pod.shape for pod in problem.pods} | {pod.shape for pod in problem.bound}
    shapes = [problem.shapes[digest] for digest in sorted(digests)]
    return tuple(sorted({key for shape in shapes for key in _topology_keys_of(shape, respect)} - {HOSTNAME}))


def _topology_keys_of(shape: PodShape, respect: bool) -> Iterator[str]:
    for constraint in shape.spread:
        if respect or constraint.when_unsatisfiable == HARD_SPREAD:
            yield normalise(constraint.topology_key)
    for term in (*shape.affinity, *shape.anti_affinity):
        if not term.weight:
            yield normalise(term.topology_key)
