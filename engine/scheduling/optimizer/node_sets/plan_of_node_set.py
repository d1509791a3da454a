"""Back from a set of new nodes to a plan: the pods are where the scheduler puts them, and each node's claim is the
answer to a question about it alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.kube_scheduler.scheduler import Bindings, new_node_name
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_PLAN, TOUCHES_PER_POD, TOUCHES_PER_REPEATED_POD
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NewNode, NodeSet, NodeSets
from kerf.engine.scheduling.optimizer.partial_problems import problem_on_node, without_types
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD
from kerf.engine.scheduling.problem.problem import PendingPod, Problem


class PlanOfNodeSet:
    """About the fleets of one problem."""

    def __init__(self, problem: Problem, menu: InstanceOptions, fleets: NodeSets) -> None:
        self._problem = problem
        self._menu = menu
        self._fleets = fleets
        self._pods = {each.uid: each for each in problem.pods}
        self._pools = {each.pool.name: each for each in problem.pools}
        self._templates = {each.name: number for number, each in enumerate(menu.templates)}
        self._keys = _hard_topology_keys(problem)

    def placements(self, fleet: NodeSet) -> tuple[Placement, ...]:
        """The pods on existing nodes."""
        there = self._pods_by_seat(fleet.bindings)
        return tuple(
            Placement(each.name, each.claim, tuple(pod.uid for pod in there[each.name]))
            for each in sorted(self._problem.nodes, key=lambda each: each.name)
            if each.name in there
        )

    def cost(self, fleet: NodeSet) -> int:
        """What the answers cost, about, in touches: equal ones are planned once."""
        shapes: dict[str, set[str]] = defaultdict(set)
        for uid, seat in fleet.bindings.node_of.items():
            shapes[seat].add(self._pods[uid].shape)
        different = {(each.kind, frozenset(shapes[new_node_name(n)])) for n, each in enumerate(fleet.berths)}
        plans = sum(TOUCHES_PER_PLAN + TOUCHES_PER_POD * len(found) for _, found in different if found)
        return plans + TOUCHES_PER_REPEATED_POD * len(fleet.bindings.node_of)

    def key(self, berth: NewNode, question: Problem) -> object:
        """Equal for questions about nodes that are alike and pods that are, but for their names; None where these
        matter, too."""
        if any(self._problem.shapes[self._pods[each.uid].shape].volumes for each in question.pods):
            return None
        return berth.kind, tuple(sorted((each.namespace, each.shape) for each in question.pods))

    def of(self, fleet: NodeSet) -> Iterator[tuple[NewNode, Problem]]:
        """Each node that has pods, and the question whose answer is its claim: those pods, on this type or a dearer
        one, with its labels where other pods may look at them."""
        there = self._pods_by_seat(fleet.bindings)
        for number, berth in enumerate(fleet.berths):
            pods = there.get(new_node_name(number))
            if pods:
                yield berth, self._question(berth, pods)

    def _pods_by_seat(self, made: Bindings) -> Mapping[str, list[PendingPod]]:
        there: dict[str, list[PendingPod]] = {}
        for uid, seat in made.node_of.items():
            there.setdefault(seat, []).append(self._pods[uid])
        return {
            name: sorted(pods, key=lambda each: (each.namespace, each.name, each.uid)) for name, pods in there.items()
        }

    def _question(self, berth: NewNode, pods: Sequence[PendingPod]) -> Problem:
        claim = berth.claim
        pool = self._pools[claim.node_pool]
        labels = self._fleets.labels(berth)
        asked = problem_on_node(
            self._problem,
            {key: labels[key] for key in self._pinned(berth, pods) if key in labels},
            pods,
            pool,
            berth.most,
        )
        types = self._problem.catalogues[pool.catalogue].types
        gone = sorted(frozenset(each.name for each in types).difference(claim.instance_types))
        return replace(asked, unavailable=asked.unavailable | without_types(gone))

    def _pinned(self, berth: NewNode, pods: Iterable[PendingPod]) -> list[str]:
        """The labels that the claim must keep: those that it was narrowed by, and those that its pods look at together
        with others."""
        own = self._menu.templates[self._templates[berth.claim.node_pool]].state.requirements
        narrowed = {each.key for each in berth.claim.constraints if own.find(each.key) != each}
        looking = any((each.namespace, each.shape) not in self._fleets.unattached for each in pods)
        return sorted(narrowed.union(self._keys if looking else ()))


def _hard_topology_keys(problem: Problem) -> tuple[str, ...]:
    """The labels whose domains hard constraints of pods look at."""
    digests = {each.shape for each in problem.pods} | {each.shape for each in problem.bound}
    shapes = [problem.shapes[each] for each in sorted(digests)]
    return tuple(sorted({key for shape in shapes for key in _hard_keys(shape)} - {HOSTNAME}))


def _hard_keys(shape: PodShape) -> Iterator[str]:
    for each in shape.spread:
        if each.when_unsatisfiable == HARD_SPREAD:
            yield normalise(each.topology_key)
    for term in (*shape.affinity, *shape.anti_affinity):
        if not term.weight:
            yield normalise(term.topology_key)
