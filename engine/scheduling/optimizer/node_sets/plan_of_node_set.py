"""Turns a set of new nodes into a plan again: each node becomes a problem of its own for the planner.

The pods are where kube-scheduler would bind them. The planner's answer to a node's problem is the node's claim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.kube_scheduler.scheduler import new_node_name
from kerf.engine.scheduling.optimizer.alternative_plans import placements
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_PLAN, TOUCHES_PER_POD, TOUCHES_PER_REPEATED_POD
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets
from kerf.engine.scheduling.optimizer.partial_problems import problem_on_node, without_types
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.pods.pod_classes import RESPECT
from kerf.engine.scheduling.pods.pod_requirements import hard_keys, spread_keys
from kerf.engine.scheduling.problem.problem import PendingPod, Problem, by_name


class PlanOfNodeSet:
    """Makes the parts of plans for the node sets of one problem."""

    def __init__(self, problem: Problem, options: InstanceOptions, node_sets: NodeSets) -> None:
        self._problem = problem
        self._options = options
        self._node_sets = node_sets
        self._topology_keys = _topology_keys(problem)

    def outline(self, node_set: NodeSet) -> Plan:
        """The plan before its claims are planned again: each is what its node will be."""
        claims = []
        for node, pods in self._pods_on_nodes(node_set):
            labels = node.info.labels
            settled = Requirements.of_labels({key: labels[key] for key in self._topology_keys if key in labels})
            constraints = tuple(Requirements(node.claim.constraints).merged(settled))
            claims.append(replace(node.claim, pods=tuple(pod.uid for pod in pods), constraints=constraints))
        return Plan(tuple(claims), placements(self._problem, node_set.bindings.node_of))

    def planning_touches(self, node_set: NodeSet) -> int:
        """What it costs, about, to plan the problems of the nodes, in touches; equal ones are planned once."""
        shapes_on: dict[str, set[str]] = defaultdict(set)
        for uid, name in node_set.bindings.node_of.items():
            shapes_on[name].add(self._problem.pod_of[uid].shape)
        distinct = {(node.kind, frozenset(shapes_on[new_node_name(n)])) for n, node in enumerate(node_set.nodes)}
        plans = sum(TOUCHES_PER_PLAN + TOUCHES_PER_POD * len(shapes) for _, shapes in distinct if shapes)
        return plans + TOUCHES_PER_REPEATED_POD * len(node_set.bindings.node_of)

    def key(self, node: NewNode, problem: Problem) -> object:
        """Equal for problems of nodes and pods that are alike but for their names; None where names matter, too."""
        if any(self._problem.shapes[self._problem.pod_of[pod.uid].shape].volumes for pod in problem.pods):
            return None
        return node.kind, tuple(sorted(pod.shape_key for pod in problem.pods))

    def problems(self, node_set: NodeSet) -> Iterator[tuple[NewNode, Problem]]:
        """Each node that has pods, with its problem: these pods, on the node's type or a dearer one, and with the
        node's labels where other pods may look at them."""
        return ((node, self._problem_of(node, pods)) for node, pods in self._pods_on_nodes(node_set) if pods)

    def _pods_on_nodes(self, node_set: NodeSet) -> Iterator[tuple[NewNode, list[PendingPod]]]:
        """Each node with its pods, by name."""
        pods_on: dict[str, list[PendingPod]] = defaultdict(list)
        for uid, name in node_set.bindings.node_of.items():
            pods_on[name].append(self._problem.pod_of[uid])
        for number, node in enumerate(node_set.nodes):
            yield node, sorted(pods_on[new_node_name(number)], key=by_name)

    def _problem_of(self, node: NewNode, pods: Sequence[PendingPod]) -> Problem:
        claim = node.claim
        pool = self._problem.pool_of[claim.node_pool]
        labels = node.info.labels
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
        related = any(pod.shape_key not in self._node_sets.independent for pod in pods)
        return sorted(narrowed.union(self._topology_keys if related else ()))


def _topology_keys(problem: Problem) -> tuple[str, ...]:
    """The labels whose domains spreads and hard rules of pods look at, without the hostname."""
    spread = spread_keys if problem.settings.preference_policy == RESPECT else hard_keys
    digests = {pod.shape for pod in problem.pods} | {pod.shape for pod in problem.bound}
    shapes = [problem.shapes[digest] for digest in digests]
    keys = {key for shape in shapes for key in spread(shape)}
    terms = (term for shape in shapes for term in (*shape.affinity, *shape.anti_affinity) if not term.weight)
    return tuple(sorted(keys.union(normalise(term.topology_key) for term in terms) - {HOSTNAME}))
