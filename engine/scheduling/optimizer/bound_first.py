"""Plans for pods that are told their nodes, beside existing nodes that kube-scheduler fills first.

A pod can be told a new node (`Settings.nominations`). By then kube-scheduler has put what it could onto the nodes that
are there, in its own order. A plan that meant that room for other pods comes true for neither. So these pods get the
nodes that the model of kube-scheduler gives them, and the plan is made for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler, setup_touches
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.alternative_plans import may_replace, with_bound
from kerf.engine.scheduling.optimizer.combined_trace import CombinedTrace, TracedPlan
from kerf.engine.scheduling.optimizer.first_plan.first_plan import first_plan
from kerf.engine.scheduling.optimizer.partial_problems import problem_after_binding
from kerf.engine.scheduling.optimizer.spread_judge import SpreadJudge
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem


class BoundFirst(Struct, frozen=True):
    """What kube-scheduler does before new nodes come: `node_of` has the pods (uids) that it binds, with their nodes.
    `rest` is the problem of the other pods, and `first` its first plan. `judge` compares plans of these pods, with the
    bound ones beside them, with the first plan of all."""

    problem: Problem
    node_of: Mapping[str, str]
    rest: Problem
    first: Plan
    judge: SpreadJudge

    def with_bound(self, planned: Plan) -> Plan:
        """A plan of the other pods, with these pods on their nodes."""
        return with_bound(self.problem, planned, self.node_of)

    def trace(self, others: TracedPlan, tracer: Tracer) -> None:
        """Tell the tracer of both plannings as of one pass: of all pods, then of the others."""
        whole, claims = CombinedTrace(tracer), others.plan.claims
        whole.add(partial(plan, self.problem), {}, self.node_of)
        whole.add(others.trace, {number: number for number in range(len(claims))}, others.plan.places)
        whole.finish(claims)


def bound_first(problem: Problem, first: Plan, max_touches: int) -> BoundFirst | None:
    """None if kube-scheduler binds no pod to an existing node, or the plan of the others leaves a pod over or breaks a
    spread that the first plan keeps. Also None if that is not known (`_is_known`), or takes more than so many
    touches to find out."""
    if not first.placements or not _is_known(problem) or setup_touches(problem) > max_touches:
        return None
    uids = frozenset([pod.uid for pod in problem.pods if not pod.virtual])
    bindings, _ = KubeScheduler(problem).bind((), uids, max_touches, SCHEDULER_VARIANTS[0])
    if bindings is None or not bindings.node_of:
        return None
    left = frozenset([pod.uid for pod in problem.pods if pod.uid not in bindings.node_of])
    rest, first_of_rest = first_plan(problem_after_binding(problem, bindings.node_of, left))
    judge = SpreadJudge(problem, first, bindings.node_of)
    found = BoundFirst(problem, bindings.node_of, rest, first_of_rest, judge)
    replaces = may_replace(problem, first, found.with_bound(first_of_rest), by_pod=False)
    return found if replaces and judge.keeps(first_of_rest) else None


def _is_known(problem: Problem) -> bool:
    """Whether what kube-scheduler will do can be known: no node is still to be launched, no pod was told another node
    by an earlier plan, and none waits for volumes, whose zones are known once pods are bound."""
    told = any(pod.target for pod in problem.pods)
    volumes = any(problem.shapes[digest].volumes for digest in {pod.shape for pod in problem.pods})
    return not told and not volumes and not any(node.requirements for node in problem.nodes)
