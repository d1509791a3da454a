"""The optimizer's entry: the first plan, then a cheaper one, or one that binds whole, within an effort."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from kerf.engine.scheduling.devices.node_devices import asks_for_devices
from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.optimizer.alternative_plans import TOLERANCE, assembled, total_price
from kerf.engine.scheduling.optimizer.bindability import BindableChoice
from kerf.engine.scheduling.optimizer.bound_first import BoundFirst, bound_first
from kerf.engine.scheduling.optimizer.combined_trace import TracedPlan, planners_own, trace_candidate
from kerf.engine.scheduling.optimizer.effort import Effort, touches_for_binding, touches_for_cheaper, touches_for_rating
from kerf.engine.scheduling.optimizer.first_plan.first_plan import first_plan
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.lower_bound import PriceBounds
from kerf.engine.scheduling.optimizer.plans_with_devices import optimize_without_devices
from kerf.engine.scheduling.optimizer.search.search import Search
from kerf.engine.scheduling.optimizer.seats_in_turn import seated, seats_in_turn
from kerf.engine.scheduling.optimizer.spread_judge import SpreadJudge
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem

LEFT_OVER = 2
"""As how many pods on new nodes one that is left over counts."""


def best_plan(problem: Problem, effort: int, tracer: Tracer | None = None) -> Plan:
    """The best plan found within `effort` search steps; with 0 steps it is the planner's first plan, unrated. Beside
    nodes that kube-scheduler fills first (`bound_first`) it may search twice.

    The result depends on nothing but the arguments. It places as many pods of each kind as the first plan. It costs
    more than the first plan only where fewer pods are left over (see `bindability`). Raises KeyError as `planner.plan`
    does.
    """
    found = _best(problem, effort)
    if tracer is not None:
        found.trace(tracer)
    return found.plan


def _best(problem: Problem, effort: int) -> TracedPlan:
    """See `best_plan`."""
    if effort > 0 and asks_for_devices(problem):
        return optimize_without_devices(problem, lambda rest: _best(rest, effort))
    problem, first = first_plan(problem)
    if effort <= 0 or not first.claims or first.truncated:  # a pass that is at its limit has no steps to spare
        return planners_own(problem, first)
    bound = bound_first(problem, first, touches_for_rating(effort)) if problem.settings.nominations else None
    if bound is None:
        return _optimized(problem, first, effort, SpreadJudge(problem, first))
    return _beside_bound(bound, first, effort)


def _beside_bound(bound: BoundFirst, first: Plan, effort: int) -> TracedPlan:
    """The best plan found for the pods that kube-scheduler leaves over when it has filled the nodes that are there.

    Where that is dearer than the first plan, the best one for all pods if it costs less in the end."""
    others = _optimized(bound.rest, bound.first, effort, bound.judge)
    spent = others.plan.touches
    whole = bound.with_bound(others.plan)
    if total_price(whole.claims) > total_price(first.claims) + TOLERANCE:
        of_all, trace = _optimized(bound.problem, first, effort, SpreadJudge(bound.problem, first))
        spent += of_all.touches
        comparable = len(of_all.placed) >= len(whole.placed) and (of_all.rated or not whole.rated)
        if comparable and _price_in_the_end(of_all) < _price_in_the_end(whole):
            return TracedPlan(replace(of_all, touches=spent), trace)
    return TracedPlan(replace(whole, touches=spent), partial(bound.trace, others))


def _price_in_the_end(planned: Plan) -> float:
    """USD per hour, with what nodes for the pods that are left over may cost (LEFT_OVER)."""
    share = LEFT_OVER * len(planned.unbound) / max(1, len(planned.on_new_nodes))
    return total_price(planned.claims) * (1 + share)


def _optimized(problem: Problem, first: Plan, effort: int, judge: SpreadJudge) -> TracedPlan:
    """The best plan found after the first one, of those that `judge` lets pass."""
    if not first.claims:
        return planners_own(problem, first)
    options = InstanceOptions(problem)
    given = touches_for_cheaper(effort, len(problem.pods))
    steps = Effort(given)
    bounds = PriceBounds(problem, options, first)
    search = Search(problem, first, options, steps, bounds, judge)
    search.run()
    steps.give(touches_for_rating(effort))
    rated = BindableChoice(problem, first, search, steps, touches_for_binding(effort)).best()
    chosen = search.widened(rated.candidate if rated else search.best)
    best = assembled(chosen, first)
    taken_by = seats_in_turn(problem, best) if problem.settings.nominations else {}
    if best.on_new_nodes != first.on_new_nodes:
        bounds = PriceBounds(problem, options, best)
    whole = replace(
        best,
        first_price=total_price(first.claims),
        lower_bound=bounds.lower,
        unbound=rated.unbound if rated else (),
        rated=rated is not None,
        touches=given + touches_for_rating(effort) - steps.left - steps.back,
    )
    return TracedPlan(seated(problem, whole, taken_by), partial(trace_candidate, chosen, taken_by))
