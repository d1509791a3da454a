"""One plan against the reference's result for the same scenario."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

PRICE_TOLERANCE = 1e-9


class Verdict(StrEnum):
    EQUAL = "equal"
    """The same claims (pods, types in order, requirements, requests, price), places and pods left over."""
    NO_WORSE = "same or cheaper"
    """Other claims or places; no further pod left over, and where the same are left over, no higher price."""
    IN_RANGE = "in its range"
    """The reference gives other results from run to run, and this one is among them: no further pod left over than in
    some run, and no higher price than in its dearest."""
    DEARER = "dearer"
    """The same pods are left over, at a higher price."""
    BEYOND = "unplaced beyond"
    """A pod is left over that the reference places."""
    NOT_YET = "not supported yet"
    """Some pod carries what kerf does not place yet."""
    INVALID = "invalid"
    """The judge (tests/support/judge.py) refuses the plan."""
    ERROR = "error"
    """The scenario could not be planned."""


ACCEPTED = frozenset([Verdict.EQUAL, Verdict.NO_WORSE, Verdict.IN_RANGE, Verdict.NOT_YET])


def left_over(result: dict[str, Any]) -> frozenset[str]:
    """The pods that have no place."""
    return frozenset([*result["errors"], *result.get("ignored", {}), *result.get("unprocessed", [])])


def normalised(result: dict[str, Any]) -> dict[str, Any]:
    """What has to be equal: everything but the texts of errors."""
    return {
        "claims": [{**each, "cheapestPrice": round(each["cheapestPrice"], 12)} for each in result["newNodeClaims"]],
        "existing": sorted((each["name"], tuple(sorted(each["pods"]))) for each in result["existingNodes"]),
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
    ours, theirs = left_over(planned["result"]), left_over(expected["result"])
    cost, bound = (each["summary"]["totalCheapestPrice"] for each in (planned, expected))
    if not ours - theirs and (ours != theirs or cost <= bound + PRICE_TOLERANCE):
        return Verdict.NO_WORSE
    if _in_range(ours, cost, expected.get("spread")):
        return Verdict.IN_RANGE
    return Verdict.BEYOND if ours - theirs else Verdict.DEARER


def _in_range(ours: frozenset[str], cost: float, spread: dict[str, Any] | None) -> bool:
    """Whether some run of the reference left no fewer pods over, and some run cost no less."""
    if spread is None:
        return False
    runs = [frozenset(each["unschedulable"]) for each in spread.get("variants", [])]
    return any(ours <= each for each in runs) and cost <= spread["priceMax"] + PRICE_TOLERANCE
