"""Launch first what the cloud has refused so far, and what depends on it only when that has come.

A hard spread may need a zone whose offerings are all in doubt (`state.nodeclaims.unavailable`). The plan counts on that
zone, and so opens nodes in other zones for pods that come after. If the cloud refuses once more, these nodes run no
pod. So nodes in doubt are launched alone, one for each set of offerings. The pods of the plan that depend on them wait
for the answer, ten seconds at most.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.nodeclaim.state_table import REQUESTED
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.launchable.launch_offers import LaunchChoice, choose_offers, is_unavailable
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.from_state import without_doubted
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.reasons import SchedulingCode, reason
from kerf.engine.scheduling.relaunch_delay import DelayedPods
from kerf.engine.state.state import Facts, State

ANSWERED_WITHIN = 10_000
"""How long the answer to a launch is waited for (ms). The cloud answers within a few seconds."""

Offers = frozenset[tuple[str, str, str]]
"""(capacity type, instance type, zone)."""


def launch_doubted_first(planned: Plan, problem: Problem, state: State, now: int) -> tuple[Plan, DelayedPods]:
    """The plan without the nodes that are of no use unless one that is in doubt comes, and the pods of these, which
    wait for the answer to its launch."""
    certain = without_doubted(problem, state, now)
    if certain == problem or not planned.claims:
        return planned, DelayedPods()
    doubted = [_offers_in_doubt(claim, problem, certain) for claim in planned.claims]
    asked = _asked_in_doubt(certain, state.facts, now)
    if not any(doubted) and not asked:
        return planned, DelayedPods()
    concerned = _shapes_of_dependents(planned, problem, certain, frozenset(asked))
    offers = frozenset[tuple[str, str, str]]().union(*asked.values())
    first, rest = list[OpenedClaim](), list[OpenedClaim]()
    shapes = {pod.uid: pod.shape for pod in problem.pods}
    for claim, own in zip(planned.claims, doubted, strict=True):
        if concerned.isdisjoint(shapes[uid] for uid in claim.pods):
            first.append(claim)
        elif not own <= offers:
            first.append(claim)
            offers |= own
        else:
            rest.append(claim)
    return _divided(planned, first, rest, sorted({zone for _, _, zone in offers}), now)


def _offers_in_doubt(claim: OpenedClaim, problem: Problem, certain: Problem) -> Offers:
    """What the claim would be launched as, if all of that is in doubt; else nothing."""
    return frozenset() if _choice(claim, certain).offers else _named(_choice(claim, problem))


def _choice(claim: OpenedClaim, problem: Problem) -> LaunchChoice:
    pool_input = next(pool_input for pool_input in problem.pools if pool_input.pool.name == claim.node_pool)
    return choose_offers(
        problem.catalogues[pool_input.catalogue],
        claim.instance_types,
        Requirements.of_specs(claim.requirements),
        problem.unavailable_to(pool_input),
        max_types=problem.settings.max_launch_types,
    )


def _named(choice: LaunchChoice) -> Offers:
    return frozenset((choice.capacity_type, offer.instance_type, offer.zone) for offer in choice.offers)


def _asked_in_doubt(certain: Problem, facts: Facts, now: int) -> dict[str, Offers]:
    """The claims that are in doubt and were asked for a moment ago."""
    unavailable = {pool_input.pool.name: certain.unavailable_to(pool_input) for pool_input in certain.pools}
    found = {}
    for name, order in sorted(facts.launches.items()):
        claim = facts.claims.get(name)
        if claim is None or claim.state != REQUESTED or claim.created + ANSWERED_WITHIN <= now:
            continue
        offers = frozenset((order.capacity_type, offer.instance_type, offer.zone) for offer in order.offers)
        lacking = unavailable.get(order.node_pool, frozenset())
        if all(is_unavailable(lacking, *offer) for offer in offers):
            found[name] = offers
    return found


def _shapes_of_dependents(planned: Plan, problem: Problem, certain: Problem, asked: frozenset[str]) -> frozenset[str]:
    """The shapes of the pods that have a place only if something in doubt comes. By shape, because which of like pods
    get a place is chance."""
    nodes = tuple(node for node in problem.nodes if node.claim not in asked)
    sure = best_plan(replace(certain, nodes=nodes), effort=0)
    dependent = planned.placed - sure.placed
    return frozenset(pod.shape for pod in problem.pods if pod.uid in dependent)


def _divided(
    planned: Plan, first: list[OpenedClaim], rest: list[OpenedClaim], zones: list[str], now: int
) -> tuple[Plan, DelayedPods]:
    if not rest:
        return planned, DelayedPods()
    why = reason(SchedulingCode.IN_DOUBT, zones=zones)
    pods = tuple(uid for claim in rest for uid in claim.pods)
    unbound = tuple(uid for uid in planned.unbound if uid not in pods)
    kept = replace(planned, claims=tuple(first), unbound=unbound)
    return kept, DelayedPods(frozenset(pods), (Unplaced(pods, (why,)),), now + ANSWERED_WITHIN)
