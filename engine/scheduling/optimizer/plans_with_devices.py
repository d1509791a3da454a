"""Effort for plans about devices: what has devices stays as the planner made it, and the rest is improved beside it.

The search looks at room, and would make nodes of types that have no devices. So it is asked only of pods that ask for
none, that no other pod looks at, and whose new nodes are shared with no pod of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT
from kerf.engine.scheduling.optimizer.candidates import (
    counted_against_limits,
    independent_pods,
    may_replace,
    total_price,
)
from kerf.engine.scheduling.optimizer.combined_trace import RenumberingTracer
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import PoolInput, Problem

Improve = Callable[[Problem, Tracer | None], Plan]


def optimize_without_devices(problem: Problem, improve: Improve, tracer: Tracer | None) -> Plan:
    """The first plan with a cheaper set of nodes for the pods that have nothing to do with devices. It is not rated."""
    first = plan(problem)
    held = _claims_kept(problem, first)
    if first.truncated or len(held) == len(first.claims):
        return first if tracer is None else plan(problem, tracer)
    rest = _problem_of_other_claims(problem, first, held)
    better = improve(rest, None)
    claims = (*(first.claims[number] for number in held), *better.claims)
    made = replace(first, claims=claims, first_price=total_price(first.claims), lower_bound=better.lower_bound)
    if not may_replace(problem, first, made):
        return first if tracer is None else plan(problem, tracer)
    if tracer is not None:
        _trace(problem, rest, held, made, improve, tracer)
    return made


def _claims_kept(problem: Problem, first: Plan) -> list[int]:
    """The claims that stay, by number: a pod of theirs asks for devices or for company, or is asked for, or they hold
    reserved capacity."""
    free = independent_pods(problem)
    pods = {each.uid: each for each in problem.pods}

    def may_go(claim: OpenedClaim) -> bool:
        mine = [pods[uid] for uid in claim.pods]
        return not claim.reservations and all((each.namespace, each.shape) in free for each in mine)

    return [number for number, claim in enumerate(first.claims) if not may_go(claim)]


def _problem_of_other_claims(problem: Problem, first: Plan, held: Sequence[int]) -> Problem:
    """The question about the other claims' pods: old nodes have no room for these, and what is held counts against the
    limits."""
    kept = [first.claims[number] for number in held]
    going = {uid for number, each in enumerate(first.claims) if number not in held for uid in each.pods}
    return replace(
        problem,
        pods=tuple(each for each in problem.pods if each.uid in going),
        pools=tuple(_with_usage(problem, each, kept) for each in problem.pools),
        nodes=(),
        bound=(),
        leaving=(),
        devices=None,
    )


def _with_usage(problem: Problem, pool: PoolInput, kept: Sequence[OpenedClaim]) -> PoolInput:
    usage = dict(pool.usage)
    for each in kept:
        if each.node_pool == pool.pool.name:
            counts = {**counted_against_limits(pool.pool, each, problem, pool.catalogue), NODES_LIMIT: 1}
            for name, amount in counts.items():
                usage[name] = usage.get(name, 0) + amount
    return replace(pool, usage=usage)


def _trace(problem: Problem, rest: Problem, held: Sequence[int], made: Plan, improve: Improve, tracer: Tracer) -> None:
    """As if all had been planned in one pass."""
    final: dict[str, str | int] = {uid: each.node for each in made.placements for uid in each.pods}
    final |= {uid: number for number, each in enumerate(made.claims) for uid in each.pods}
    whole = RenumberingTracer(tracer, {old: new for new, old in enumerate(held)}, final, 0)
    plan(problem, whole)
    others = range(len(made.claims) - len(held))
    part = RenumberingTracer(tracer, {number: number + len(held) for number in others}, final, whole.classes)
    improve(rest, part)
    for number, left in sorted((*whole.finished, *part.finished)):
        tracer.claim_finished(number, made.claims[number].node_pool, left)
