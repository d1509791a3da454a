"""Write plans in the form of the reference's results (docs/plan.md, section 2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.karpenter.requirements import Requirement
from kerf.engine.model.labels import HOSTNAME, ZONE, ZONE_ID
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.explain.funnel_tracer import Funnel
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.problem import PendingPod, Problem
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from kerf.projections.prose.funnels import near_miss_sentence
from kerf.projections.prose.nearest_reasons import nearest_first


def failed(identity: Mapping[str, str], error: str) -> dict[str, Any]:
    """Return the result of a scenario that could not be planned."""
    summary = {"nodes": 0, "totalCheapestPrice": 0, "podsOnExistingNodes": 0, "unschedulableCount": 0}
    result = {"newNodeClaims": [], "existingNodes": [], "errors": {}, "error": error}
    return {
        **identity,
        "summary": summary,
        "result": result,
        "kerf": {"unplaced": [], "ignored": [], "reasonCounts": {}},
    }


def result_of(identity: Mapping[str, str], problem: Problem, planned: Plan, funnel: Funnel | None) -> dict[str, Any]:
    """Write a plan as `{name, family, summary, result, kerf}`."""
    pods = {pod.uid: pod for pod in problem.pods}
    zones = _ZonesOfClaims(problem)
    claims = sorted(
        (claim_of(claim, pods) | {"launchZones": zones.of(claim)} for claim in planned.claims),
        key=lambda each: (each["nodePool"], each["pods"][0]),
    )
    existing = [
        {"name": placement.node, "pods": sorted(pods[uid].name for uid in placement.pods)}
        for placement in planned.placements
    ]
    unprocessed, errors, deferred = _failures(planned.unplaced, pods)
    unprocessed = sorted([*unprocessed, *(pods[uid].name for uid in planned.truncated)])
    result: dict[str, Any] = {"newNodeClaims": claims, "existingNodes": existing, "errors": errors}
    optional = {"deferred": deferred, "ignored": _texts(planned.ignored, pods), "unprocessed": unprocessed}
    result |= {name: value for name, value in optional.items() if value}
    summary = {
        "nodes": len(claims),
        "totalCheapestPrice": math.fsum(claim.price for claim in planned.claims),
        "podsOnExistingNodes": sum(len(placement.pods) for placement in planned.placements),
        "unschedulableCount": len(errors),
    }
    extra = _extra(planned, pods, funnel) | {"nominated": problem.settings.nominations}
    return {**identity, "summary": summary, "result": result, "kerf": extra}


class _ZonesOfClaims:
    """Finds the zones in which a claim can be launched. Equal claims are looked at once."""

    def __init__(self, problem: Problem) -> None:
        self._catalogues = {pool.pool.name: problem.catalogues.get(pool.catalogue) for pool in problem.pools}
        self._types: dict[str, dict[str, InstanceType]] = {}
        self._known: dict[Hashable, list[str]] = {}

    def of(self, claim: OpenedClaim) -> list[str]:
        key = claim.node_pool, claim.instance_types, claim.capacity_types, claim.constraints
        if key not in self._known:
            self._known[key] = sorted({offering.zone for offering in self._offerings(claim)})
        return self._known[key]

    def _offerings(self, claim: OpenedClaim) -> Iterator[Offering]:
        catalogue = self._catalogues.get(claim.node_pool)
        types = self._types.setdefault(
            claim.node_pool,
            {instance_type.name: instance_type for instance_type in (catalogue.types if catalogue is not None else ())},
        )
        asked = {requirement.key: requirement for requirement in claim.constraints}
        for name in claim.instance_types:
            for offering in types[name].offerings:
                places = {ZONE: offering.zone, ZONE_ID: offering.zone_id}
                fits = all(not value or key not in asked or asked[key].has(value) for key, value in places.items())
                if offering.available and offering.capacity_type in claim.capacity_types and fits:
                    yield offering


def claim_of(claim: OpenedClaim, pods: Mapping[str, PendingPod]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "nodePool": claim.node_pool,
        "pods": sorted(pods[uid].name for uid in claim.pods),
        "instanceTypes": list(claim.instance_types),
        "requirements": {
            requirement.key: requirement_of(requirement)
            for requirement in claim.constraints
            if requirement.key != HOSTNAME
        },
        "requests": {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in claim.requests.items()},
        "cheapestPrice": claim.price,
        "cheapestInstanceType": claim.instance_types[0],
        "launchCapacityTypes": list(claim.capacity_types),
    }
    if claim.min_values_relaxed:
        result["minValuesRelaxed"] = True
    return result


def requirement_of(requirement: Requirement) -> dict[str, Any]:
    """Write a requirement as `{operator, values, minValues, gte, lte}`, without the parts that it does not have."""
    result: dict[str, Any] = {"operator": requirement.operator}
    if requirement.values:
        result["values"] = sorted(requirement.values)
    if requirement.min_values is not None:
        result["minValues"] = requirement.min_values
    if requirement.gte is not None:
        result["gte"] = str(requirement.gte)
    if requirement.lte is not None:
        result["lte"] = str(requirement.lte)
    return result


def _failures(
    unplaced: Iterable[Unplaced], pods: Mapping[str, PendingPod]
) -> tuple[list[str], dict[str, str], list[str]]:
    """Return the pods for which nothing was decided, the error of each other pod, and those of them that wait for
    reserved capacity."""
    unprocessed: list[str] = []
    errors: dict[str, str] = {}
    deferred: list[str] = []
    for group in unplaced:
        names = [pods[uid].name for uid in group.pods]
        codes = {reason.code for reason in group.reasons}
        if codes == {SchedulingCode.NO_NODE_POOL}:
            unprocessed += names
            continue
        if SchedulingCode.RESERVATION in codes:
            deferred += names
        errors |= dict.fromkeys(names, _text(group))
    return sorted(unprocessed), dict(sorted(errors.items())), sorted(deferred)


def _texts(groups: Iterable[Unplaced], pods: Mapping[str, PendingPod]) -> dict[str, str]:
    return dict(sorted((pods[uid].name, _text(group)) for group in groups for uid in group.pods))


def _text(unplaced: Unplaced) -> str:
    return "; ".join(f"{reason.code}: {sentence(reason)}" for reason in nearest_first(unplaced.reasons))


def _extra(planned: Plan, pods: Mapping[str, PendingPod], funnel: Funnel | None) -> dict[str, Any]:
    extra: dict[str, Any] = {
        "unplaced": [_reasons(group, pods, _misses(funnel, group)) for group in planned.unplaced],
        "ignored": [_reasons(group, pods, {}) for group in planned.ignored],
        "reasonCounts": dict(
            sorted(Counter(reason.code for group in planned.unplaced for reason in group.reasons).items())
        ),
    }
    if planned.truncated:
        extra["truncated"] = sorted(pods[uid].name for uid in planned.truncated)
    if planned.first_price:
        extra |= _gains(planned, pods)
    if funnel is not None:
        extra["funnel"] = msgspec.to_builtins(funnel)
    return extra


def _gains(planned: Plan, pods: Mapping[str, PendingPod]) -> dict[str, Any]:
    """Say what the effort gained. Prices are in USD per hour; `gap` is the part of the price that the lower bound
    leaves open."""
    cost = math.fsum(claim.price for claim in planned.claims)
    gains: dict[str, Any] = {"firstPrice": planned.first_price, "lowerBound": planned.lower_bound}
    if cost:
        gains["gap"] = round(1 - planned.lower_bound / cost, 6)
    if planned.rated:
        gains["unbound"] = sorted(pods[uid].name for uid in planned.unbound)
    return gains


def _misses(funnel: Funnel | None, group: Unplaced) -> dict[str, str]:
    """Map each NodePool to the single change that would let most types through for these pods. Empty without a
    funnel."""
    if funnel is None:
        return {}
    looks = [look for pod_class in funnel.classes if group.pods[0] in pod_class.unplaced for look in pod_class.pools]
    looks += funnel.dropped
    return {look.funnel.node_pool: near_miss_sentence(look.funnel.near[0]) for look in looks if look.funnel.near}


def _reasons(group: Unplaced, pods: Mapping[str, PendingPod], misses: Mapping[str, str]) -> dict[str, Any]:
    return {
        "count": len(group.pods),
        "pods": sorted(pods[uid].name for uid in group.pods),
        "reasons": [_reason(reason, misses) for reason in nearest_first(group.reasons)],
    }


def _reason(reason: Reason, misses: Mapping[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {"code": reason.code}
    if reason.params:
        result["params"] = reason.params
    result["text"] = sentence(reason)
    miss = misses.get(str(reason.params.get("node_pool", "")))
    if miss is not None:
        result["nearestMiss"] = miss
    return result
