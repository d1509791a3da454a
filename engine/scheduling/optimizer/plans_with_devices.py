"""Plans with pods that use devices: their nodes stay as the planner made them, and the others are optimized.

The search looks at room only, and would choose types without the devices. So it gets only the pods that ask for no
devices, that no topology rule concerns, and whose new nodes have no other pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.optimizer.alternative_plans import independent_pods, may_replace, total_price
from kerf.engine.scheduling.optimizer.combined_trace import CombinedTrace, TracedPlan, planners_own
from kerf.engine.scheduling.optimizer.partial_problems import limits_used
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem


def optimize_without_devices(problem: Problem, optimize: Callable[[Problem], TracedPlan]) -> TracedPlan:
    """The first plan with a cheaper set of nodes for the pods that have nothing to do with devices. It is not rated."""
    first = plan(problem)
    kept = _claims_kept(problem, first)
    if first.truncated or len(kept) == len(first.claims):
        return planners_own(problem, first)
    optimized = optimize(_problem_of_other_claims(problem, first, kept))
    best = replace(
        first,
        claims=(*(first.claims[number] for number in kept), *optimized.plan.claims),
        first_price=total_price(first.claims),
        lower_bound=optimized.plan.lower_bound,
        touches=optimized.plan.touches,
    )
    if not may_replace(problem, first, best):
        return planners_own(problem, first)

    def trace(tracer: Tracer) -> None:
        whole, others = CombinedTrace(tracer), range(len(optimized.plan.claims))
        whole.add(partial(plan, problem), {old: new for new, old in enumerate(kept)}, best.places)
        whole.add(optimized.trace, {number: number + len(kept) for number in others}, best.places)
        whole.finish(best.claims)

    return TracedPlan(best, trace)


def _claims_kept(problem: Problem, first: Plan) -> list[int]:
    """The claims that stay, by number: they hold reservations, or have pods with devices or with topology rules that
    concern them."""
    independent = independent_pods(problem)

    def may_go(claim: OpenedClaim) -> bool:
        return not claim.reservations and all(problem.pod_of[uid].shape_key in independent for uid in claim.pods)

    return [number for number, claim in enumerate(first.claims) if not may_go(claim)]


def _problem_of_other_claims(problem: Problem, first: Plan, kept: Sequence[int]) -> Problem:
    """The problem of the pods of the other claims, without existing nodes (these have no room for them); the kept
    claims count against the limits."""
    kept_claims = [first.claims[number] for number in kept]
    others = {uid for number, claim in enumerate(first.claims) if number not in kept for uid in claim.pods}
    return replace(
        problem,
        pods=tuple(pod for pod in problem.pods if pod.uid in others),
        pools=tuple(
            replace(pool, usage=added(pool.usage, limits_used(problem, pool, kept_claims))) for pool in problem.pools
        ),
        nodes=(),
        bound=(),
        leaving=(),
        devices=None,
    )
