"""Plans in the form of the reference's results (docs/plan.md, section 2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kerf.engine.model.labels import HOSTNAME
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.explain.funnel_tracer import Funnel
from kerf.engine.scheduling.matching.requirements import Requirement
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.problem import PendingPod, Problem
from kerf.engine.scheduling.reasons import Code, sentence
from kerf.projections.prose.funnels import near_sentence


def failed(identity: Mapping[str, str], error: str) -> dict[str, Any]:
    """The line of a scenario that could not be planned."""
    summary = {"nodes": 0, "totalCheapestPrice": 0, "podsOnExistingNodes": 0, "unschedulableCount": 0}
    result = {"newNodeClaims": [], "existingNodes": [], "errors": {}, "error": error}
    return {
        **identity,
        "summary": summary,
        "result": result,
        "kerf": {"unplaced": [], "ignored": [], "reasonCounts": {}},
    }


def result_of(identity: Mapping[str, str], problem: Problem, planned: Plan, funnel: Funnel | None) -> dict[str, Any]:
    """`{name, family, summary, result, kerf}` of a plan."""
    pods = {pod.uid: pod for pod in problem.pods}
    claims = sorted(
        (claim_of(each, pods) for each in planned.claims),
        key=lambda each: (each["nodePool"], each["pods"][0]),
    )
    existing = [{"name": each.node, "pods": sorted(pods[uid].name for uid in each.pods)} for each in planned.placements]
    unprocessed, errors, deferred = _failures(planned.unplaced, pods)
    unprocessed = sorted([*unprocessed, *(pods[uid].name for uid in planned.truncated)])
    result: dict[str, Any] = {"newNodeClaims": claims, "existingNodes": existing, "errors": errors}
    optional = {"deferred": deferred, "ignored": _texts(planned.ignored, pods), "unprocessed": unprocessed}
    result |= {name: value for name, value in optional.items() if value}
    summary = {
        "nodes": len(claims),
        "totalCheapestPrice": math.fsum(each.price for each in planned.claims),
        "podsOnExistingNodes": sum(len(each.pods) for each in planned.placements),
        "unschedulableCount": len(errors),
    }
    return {**identity, "summary": summary, "result": result, "kerf": _extra(planned, pods, funnel)}


def claim_of(claim: OpenedClaim, pods: Mapping[str, PendingPod]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "nodePool": claim.node_pool,
        "pods": sorted(pods[uid].name for uid in claim.pods),
        "instanceTypes": list(claim.instance_types),
        "requirements": {each.key: requirement_of(each) for each in claim.constraints if each.key != HOSTNAME},
        "requests": {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in claim.requests.items()},
        "cheapestPrice": claim.price,
        "cheapestInstanceType": claim.instance_types[0],
        "launchCapacityTypes": list(claim.capacity_types),
    }
    if claim.min_values_relaxed:
        made["minValuesRelaxed"] = True
    return made


def requirement_of(given: Requirement) -> dict[str, Any]:
    """`{operator, values, minValues, gte, lte}`, absent parts left out."""
    made: dict[str, Any] = {"operator": given.operator}
    if given.values:
        made["values"] = sorted(given.values)
    if given.min_values is not None:
        made["minValues"] = given.min_values
    if given.gte is not None:
        made["gte"] = str(given.gte)
    if given.lte is not None:
        made["lte"] = str(given.lte)
    return made


def _failures(
    unplaced: Iterable[Unplaced], pods: Mapping[str, PendingPod]
) -> tuple[list[str], dict[str, str], list[str]]:
    """Pods for which nothing was decided, the error of each other one, and those of them that are put off."""
    unprocessed: list[str] = []
    errors: dict[str, str] = {}
    deferred: list[str] = []
    for each in unplaced:
        names = [pods[uid].name for uid in each.pods]
        codes = {reason.code for reason in each.reasons}
        if codes == {Code.NO_NODE_POOL}:
            unprocessed += names
            continue
        if Code.RESERVATION in codes:
            deferred += names
        errors |= dict.fromkeys(names, _text(each))
    return sorted(unprocessed), dict(sorted(errors.items())), sorted(deferred)


def _texts(given: Iterable[Unplaced], pods: Mapping[str, PendingPod]) -> dict[str, str]:
    return dict(sorted((pods[uid].name, _text(each)) for each in given for uid in each.pods))


def _text(unplaced: Unplaced) -> str:
    return "; ".join(f"{each.code}: {sentence(each)}" for each in unplaced.reasons)


def _extra(planned: Plan, pods: Mapping[str, PendingPod], funnel: Funnel | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "unplaced": [_reasons(each, pods, _misses(funnel, each)) for each in planned.unplaced],
        "ignored": [_reasons(each, pods, {}) for each in planned.ignored],
        "reasonCounts": dict(
            sorted(Counter(reason.code for each in planned.unplaced for reason in each.reasons).items())
        ),
    }
    if planned.truncated:
        made["truncated"] = sorted(pods[uid].name for uid in planned.truncated)
    if planned.first_price:
        made |= _gains(planned, pods)
    if funnel is not None:
        made["funnel"] = msgspec.to_builtins(funnel)
    return made


def _gains(planned: Plan, pods: Mapping[str, PendingPod]) -> dict[str, Any]:
    """What the effort came to: prices in USD per hour; `gap` is the part of the price that the bound leaves open."""
    cost = math.fsum(each.price for each in planned.claims)
    made: dict[str, Any] = {"firstPrice": planned.first_price, "lowerBound": planned.lower_bound}
    if cost:
        made["gap"] = round(1 - planned.lower_bound / cost, 6)
    if planned.rated:
        made["unbound"] = sorted(pods[uid].name for uid in planned.unbound)
    return made


def _misses(funnel: Funnel | None, given: Unplaced) -> dict[str, str]:
    """NodePool → what single change would let most types through for these pods; without the funnel nothing is
    known."""
    if funnel is None:
        return {}
    looks = [look for each in funnel.classes if given.pods[0] in each.unplaced for look in each.pools]
    looks += funnel.dropped
    return {look.funnel.node_pool: near_sentence(look.funnel.near[0]) for look in looks if look.funnel.near}


def _reasons(given: Unplaced, pods: Mapping[str, PendingPod], misses: Mapping[str, str]) -> dict[str, Any]:
    return {
        "count": len(given.pods),
        "pods": sorted(pods[uid].name for uid in given.pods),
        "reasons": [_reason(each, misses) for each in given.reasons],
    }


def _reason(given: Reason, misses: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {"code": given.code}
    if given.params:
        made["params"] = given.params
    made["text"] = sentence(given)
    miss = misses.get(str(given.params.get("node_pool", "")))
    if miss is not None:
        made["nearestMiss"] = miss
    return made
