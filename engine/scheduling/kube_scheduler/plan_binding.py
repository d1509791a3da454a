"""Whether the pods of a plan can be bound where the plan puts them, one after another, in some order.

A plan is made as a whole, but pods are bound one by one: a spread that holds in the end may forbid the first step.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.scheduling.kube_scheduler.binding_order import BindingOrder, PlacedPod, may_wait_for_others
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, existing_node, planned_node
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem, ShapeKey


class PlanBinding:
    """The check for the plans of one problem; what all of them share is computed once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._daemons = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        self._existing = [existing_node(node, self._daemons, problem) for node in (*problem.nodes, *problem.leaving)]
        self._numbers = {node.name: number for number, node in enumerate(self._existing)}
        self._rules = InterpodRules(problem)
        self._counts = InterpodCounts(problem, self._rules, self._existing)
        self._shape_keys = {pod.uid: pod.shape_key for pod in problem.pods}

    def binds(self, plan: Plan) -> bool:
        """Whether every pod of the plan can be bound where it is planned."""
        return not self.stuck(plan)

    def stuck(self, plan: Plan) -> list[str]:
        """The pods (uids) that cannot be bound where they are planned, because of topology alone.

        Two orders are tried. In the first, pods without rules come last, or one by one where the others are stuck. In
        the second, so do also pods with rules that are counted by a spread which is none of their own.
        """
        shape_keys, first_new = self._shape_keys, len(self._existing)
        new = [planned_node(f"~{n}", claim, self._daemons, self._problem) for n, claim in enumerate(plan.claims)]
        pods = [
            (shape_keys[uid], self._numbers[placement.node], uid)
            for placement in plan.placements
            for uid in placement.pods
        ]
        pods += [(shape_keys[uid], first_new + n, uid) for n, claim in enumerate(plan.claims) for uid in claim.pods]
        stuck = self._stuck(new, pods, frozenset())
        late = _counted_by_other_spreads(self._rules, {shape_key for shape_key, _, _ in pods}) if stuck else frozenset()
        if late:
            stuck = min(stuck, self._stuck(new, pods, late), key=len)
        return stuck

    def _stuck(self, new: Iterable[NodeInfo], pods: Iterable[PlacedPod], late: frozenset[ShapeKey]) -> list[str]:
        return BindingOrder(self._counts.with_nodes(new), self._rules, pods, late).unbound()


def _counted_by_other_spreads(rules: InterpodRules, shape_keys: Iterable[ShapeKey]) -> frozenset[ShapeKey]:
    """The shapes with rules of their own that also enter a count of a spread that is none of theirs."""
    own = {
        shape_key: frozenset(spread.count for spread in rules.by_shape[shape_key].hard_spreads)
        for shape_key in shape_keys
    }
    of_spreads = frozenset(count for counts in own.values() for count in counts)
    return frozenset(
        shape_key
        for shape_key, counts in own.items()
        if may_wait_for_others(rules, shape_key) and of_spreads.intersection(rules.counts_entered(shape_key)) - counts
    )
