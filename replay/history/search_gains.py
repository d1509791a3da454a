"""What the search for cheaper plans gained, pass by pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.scheduling.optimizer.effort import touches_for_cheaper, touches_for_rating


class SearchGain(Struct, frozen=True, rename="camel"):
    """One provisioning pass that searched. Prices are in USD per hour, of all new nodes of the plan.

    `gained` is below 0 where a plan costs more so that all its pods are bound. `touches`: the effort spent; 0 in
    records of before it was kept. `steps`: about so many steps of --effort are that. `bound`: no nodes for these pods
    cost less; 0 if that is not known.
    """

    position: int
    at: int
    nodes: int
    pods: int
    first_price: float
    price: float
    gained: float
    bound: float
    touches: int
    steps: float


def search_gains(entries: Iterable[Entry]) -> Iterator[SearchGain]:
    """The passes whose plan launches nodes, and on which effort was spent, in the order of the record."""
    for entry in entries:
        result = entry.payload.result if isinstance(entry.payload, Decision) else None
        if isinstance(result, ProvisionResult) and result.first_price:
            price = math.fsum(claim.price for claim in result.claims)
            yield SearchGain(
                entry.position,
                entry.at,
                len(result.claims),
                sum(len(claim.pods) for claim in result.claims),
                result.first_price,
                price,
                result.first_price - price,
                result.lower_bound,
                result.touches,
                round(result.touches / _touches_per_step(result), 1),
            )


def _touches_per_step(result: ProvisionResult) -> float:
    """Return how many touches a step of effort is, for as many pods as the plan is about."""
    parts = (result.claims, result.placements, result.unplaced)
    pods = sum(len(item.pods) for part in parts for item in part)
    return (touches_for_cheaper(100, pods) + touches_for_rating(100)) / 100
