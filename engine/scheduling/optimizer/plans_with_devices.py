"""Plans with pods that use devices: their nodes stay as the planner made them, and the others are optimized.

The search looks at room only, and would choose types without the devices. So it gets only the pods that ask for no
devices, that no topology rule concerns, and whose new nodes have no other pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.optimizer.alternative_plans import independent_pods, may_replace, total_price
from kerf.engine.scheduling.optimizer.combined_trace import RenumberingTracer
from kerf.engine.scheduling.optimizer.partial_problems import limits_used
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem

Optimize = Callable[[Problem, Tracer | None], Plan]


def optimize_without_devices(problem: Problem, optimize: Optimize, tracer: Tracer | None) -> Plan:
    """The first plan with a cheaper set of nodes for the pods that have nothing to do with devices. It is not rated."""
    first = plan(problem)
    kept = _claims_kept(problem, first)
    if first.truncated or len(kept) == len(first.claims):
        return first if tracer is None else plan(problem, tracer)
    rest = _problem_of_other_claims(problem, first, kept)
    optimized = optimize(rest, None)
    claims = (*(first.claims[number] for number in kept), *optimized.claims)
    best = replace(
        first,
        claims=claims,
        first_price=total_price(first.claims),
        lower_bound=optimized.lower_bound,
        touches=optimized.touches,
    )
    if not may_replace(problem, first, best):
        return first if tracer is None else plan(problem, tracer)
    if tracer is not None:
        _trace(problem, rest, kept, best, optimize, tracer)
    return best


def _claims_kept(problem: Problem, first: Plan) -> list[int]:
    """The claims that stay, by number: they hold reservations, or have pods with devices or with topology rules that
    concern them."""
    independent = independent_pods(problem)
    pods = {pod.uid: pod for pod in problem.pods}

    def may_go(claim: OpenedClaim) -> bool:
        members = [pods[uid] for uid in claim.pods]
        return not claim.reservations and all((member.namespace, member.shape) in independent for member in members)

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


def _trace(
    problem: Problem, rest: Problem, kept: Sequence[int], best: Plan, optimize: Optimize, tracer: Tracer
) -> None:
    """Tell the tracer of both plannings as of one pass."""
    first_part = RenumberingTracer(tracer, {old: new for new, old in enumerate(kept)}, best.places, 0)
    plan(problem, first_part)
    others = range(len(best.claims) - len(kept))
    renumbered = {number: number + len(kept) for number in others}
    other_part = RenumberingTracer(tracer, renumbered, best.places, first_part.classes)
    optimize(rest, other_part)
    for number, types_left in sorted((first_part.finished | other_part.finished).items()):
        tracer.claim_finished(number, best.claims[number].node_pool, types_left)
