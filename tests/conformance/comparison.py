"""One plan against the reference's result for the same scenario."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

PRICE_TOLERANCE = 1e-9


class Verdict(StrEnum):
    EQUAL = "equal"
    """The same claims (pods, types in order, requirements, requests, price), places and pods left over."""
    NO_WORSE = "same or cheaper"
    """Other claims or places; no further pod left over, and where as many are left over, no higher price, than in the
    best of the reference's runs: its results vary in some scenarios."""
    IMPROVED = "with effort"
    """The first plan is dearer than that, and the one that is made of it within the default effort is not."""
    DEARER = "dearer"
    """The same pods are left over, at a higher price."""
    BEYOND = "unplaced beyond"
    """A pod is left over that the reference places."""
    NOT_YET = "not supported yet"
    """Some pod carries what kerf does not place yet."""
    INVALID = "invalid"
    """The judge (tests/support/judges/plans.py) refuses the plan."""
    ERROR = "error"
    """The scenario could not be planned."""


ACCEPTED = frozenset([Verdict.EQUAL, Verdict.NO_WORSE, Verdict.IMPROVED, Verdict.NOT_YET])


def left_over(result: dict[str, Any]) -> frozenset[str]:
    """The pods that have no place."""
    return frozenset([*result["errors"], *result.get("ignored", {}), *result.get("unprocessed", [])])


def normalised(result: dict[str, Any]) -> dict[str, Any]:
    """What has to be equal: everything but the texts of errors, and what the reference does not say."""
    return {
        "claims": [
            {**claim, "cheapestPrice": round(claim["cheapestPrice"], 12), "launchZones": None}
            for claim in result["newNodeClaims"]
        ],
        "existing": sorted(
            (existing_node["name"], tuple(sorted(existing_node["pods"]))) for existing_node in result["existingNodes"]
        ),
        "errors": sorted(result["errors"]),
        "ignored": sorted(result.get("ignored", {})),
        "deferred": sorted(result.get("deferred", [])),
        "unprocessed": sorted(result.get("unprocessed", [])),
    }


def verdict(planned: dict[str, Any], expected: dict[str, Any]) -> Verdict:
    if "error" in planned["result"]:
        return Verdict.ERROR
    if "not-supported-yet" in planned["kerf"]["reasonCounts"]:
        return Verdict.NOT_YET
    if normalised(planned["result"]) == normalised(expected["result"]):
        return Verdict.EQUAL
    return _against(planned, expected)


def improved(planned: dict[str, Any], best: dict[str, Any], expected: dict[str, Any]) -> Verdict:
    """The verdict on a first plan, and on what effort made of it where that alone is too dear."""
    found = verdict(planned, expected)
    if found is Verdict.DEARER and _against(best, expected) is Verdict.NO_WORSE:
        return Verdict.IMPROVED
    return found


def dearer(planned: dict[str, Any], expected: dict[str, Any]) -> float:
    """By how many percent a plan costs more than the cheapest of the reference's runs that leave the fewest over."""
    _, least = _least(expected)
    cost: float = planned["summary"]["totalCheapestPrice"]
    return round(100 * (cost / least - 1), 1)


def _runs(expected: dict[str, Any]) -> list[tuple[frozenset[str], float]]:
    """What each of the reference's runs leaves over, and its price."""
    varied = (expected.get("spread") or {}).get("variants", [])
    return [
        (left_over(expected["result"]), expected["summary"]["totalCheapestPrice"]),
        *((frozenset(variation["unschedulable"]), variation["totalCheapestPrice"]) for variation in varied),
    ]


def _least(expected: dict[str, Any]) -> tuple[int, float]:
    return min((len(left), price) for left, price in _runs(expected))


def _against(planned: dict[str, Any], expected: dict[str, Any]) -> Verdict:
    """Held against every run of the reference for what is left over, and against the cheapest of those that leave the
    fewest over for the price."""
    ours, cost = left_over(planned["result"]), planned["summary"]["totalCheapestPrice"]
    fewest, least = _least(expected)
    if len(ours) > fewest or not any(ours <= left for left, _ in _runs(expected)):
        return Verdict.BEYOND
    return Verdict.NO_WORSE if len(ours) < fewest or cost <= least + PRICE_TOLERANCE else Verdict.DEARER
