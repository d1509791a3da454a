"""Measure what nodes cost: price × time, of each node, hour, or workload on it."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from kerf.projections.cost import ClaimCost
from kerf.projections.figures.lives import LivesFold
from kerf.projections.figures.measures import HOUR, HOUR_MS, Measure
from kerf.projections.figures.usage import UsageFold, Use

COST, NODE_HOURS = "cost", "node_hours"
WORKLOAD = "workload"
IDLE = "(idle)"
"""What no pod asked for."""


def cost_measures(
    fold: LivesFold, by: str, since: int, until: int, usage: UsageFold | None = None
) -> Iterator[Measure]:
    """Give the cost in USD and the node hours from `since` to `until`, as finely as the dimension needs it.

    However it is divided, the cost of a node adds up to its price × time.
    """
    uses: dict[str, list[Use]] = {}
    for claim, use in usage.uses() if usage is not None and by == WORKLOAD else ():
        uses.setdefault(claim, []).append(use)
    for claim, paid in sorted(fold.cost.paid.items()):
        life = fold.lives[claim]
        about = {**life.about(), "reason": life.launched_for}
        begin, end = max(paid.since, since), min(paid.until or until, until)
        if end <= begin:
            continue
        if by == HOUR:
            yield from _hours(paid, about, begin, end)
        elif by == WORKLOAD:
            yield from _workloads(paid, about, begin, end, uses.get(claim, []))
        else:
            yield _measure(begin, about, paid.cost(end, begin), end - begin)


def _measure(at: int, about: dict[str, str], cost: float, lasted: float) -> Measure:
    return Measure(at, about, {COST: cost, NODE_HOURS: lasted / HOUR_MS})


def _hours(paid: ClaimCost, about: dict[str, str], begin: int, end: int) -> Iterator[Measure]:
    for hour in range(begin // HOUR_MS * HOUR_MS, end, HOUR_MS):
        first, last = max(hour, begin), min(hour + HOUR_MS, end)
        yield _measure(first, about, paid.cost(last, first), last - first)


def _workloads(paid: ClaimCost, about: dict[str, str], begin: int, end: int, uses: list[Use]) -> Iterator[Measure]:
    """Divide a node's cost by what its pods ask for. Where they ask for more than the node has, by their shares."""
    times: dict[str, list[float]] = {}
    for use in uses:
        lasted = min(use.until or end, end) - max(use.since, begin)
        if lasted > 0 and use.share > 0:
            times.setdefault(use.workload, []).append(lasted * use.share)
    used = {workload: fsum(shares) for workload, shares in times.items()}
    lasted = end - begin
    scale = min(1.0, lasted / fsum(used.values())) if used else 1.0
    used = {workload: share * scale for workload, share in used.items()}
    whole = paid.cost(end, begin)
    parts = {workload: whole * share / lasted for workload, share in used.items()}
    for workload, cost in sorted(parts.items()):
        yield _measure(begin, {**about, WORKLOAD: workload}, cost, used[workload])
    idle = lasted - fsum(used.values())
    yield _measure(begin, {**about, WORKLOAD: IDLE}, whole - fsum(parts.values()), idle)
