"""Whether the pods of a plan can be bound where it puts them, one after another, in some order."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.scheduling.kube_scheduler.binding_order import BindingOrder, PlacedPod, may_wait_for_others
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules, ShapeKey, TopologyNode
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, existing_node, planned_node
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem


class PlanBinding:
    """Of the pods of one problem; what all its plans share is made once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._daemons = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        self._there = [existing_node(each, self._daemons, problem) for each in (*problem.nodes, *problem.leaving)]
        self._numbers = {each.name: number for number, each in enumerate(self._there)}
        self._manners = InterpodRules(problem)
        self._company = InterpodCounts(problem, self._manners, _topology_nodes(self._there, 0))
        self._pairs = {each.uid: (each.namespace, each.shape) for each in problem.pods}

    def binds(self, made: Plan) -> bool:
        """Whether all can be."""
        return not self.stuck(made)

    def stuck(self, made: Plan) -> list[str]:
        """The pods (uids) that cannot be bound, by topology alone. Pods that ask nothing of others come last, or else
        one by one where the rest is stuck; or so do, too, those that others' spreads count, and their own do not."""
        pairs, first = self._pairs, len(self._there)
        seats = [planned_node(f"~{n}", each, self._daemons, self._problem) for n, each in enumerate(made.claims)]
        places = _topology_nodes(seats, first)
        pods = [(pairs[uid], self._numbers[each.node], uid) for each in made.placements for uid in each.pods]
        pods += [(pairs[uid], first + n, uid) for n, each in enumerate(made.claims) for uid in each.pods]
        left = self._left_over(places, pods, frozenset())
        guests = _counted_by_other_spreads(self._manners, {pair for pair, _, _ in pods}) if left else frozenset()
        if guests:
            left = min(left, self._left_over(places, pods, guests), key=len)
        return left

    def _left_over(
        self, places: Iterable[TopologyNode], pods: Iterable[PlacedPod], late: frozenset[ShapeKey]
    ) -> list[str]:
        return BindingOrder(self._company.joined(places), self._manners, pods, late).left_over()


def _topology_nodes(seats: Iterable[NodeInfo], first: int) -> list[TopologyNode]:
    return [
        TopologyNode(n, each.labels, each.known, each.name, each.taints) for n, each in enumerate(seats, start=first)
    ]


def _counted_by_other_spreads(manners: InterpodRules, pairs: Iterable[ShapeKey]) -> frozenset[ShapeKey]:
    """Pods that ask something themselves, and are counted by a spread that is none of theirs."""
    own = {pair: frozenset(each.count for each in manners.demands[pair].spreads) for pair in pairs}
    spread = frozenset(count for counts in own.values() for count in counts)
    return frozenset(
        pair
        for pair, counts in own.items()
        if may_wait_for_others(manners, pair) and spread.intersection(manners.entered(pair)) - counts
    )
