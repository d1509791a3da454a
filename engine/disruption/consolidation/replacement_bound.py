"""A bound that spares simulations: it finds nodes whose pods certainly need more than one cheaper node (D-98)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from operator import gt, itemgetter, le

from kerf.engine.disruption.eligibility import Candidate
from kerf.engine.disruption.pricing import Market
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.planner import usable_pools

RESOURCES = ("cpu", "memory")
AXES = range(len(RESOURCES))
Amounts = tuple[int, ...]
"""Amounts of `RESOURCES`, in their order."""
NOTHING = tuple(0 for _ in RESOURCES)
MAX_KEPT = 4
"""How many lists of offers are kept from one pass to the next."""


class Bound:
    """What a cluster has room for at most.

    Pods that fit on no node alone must all go onto the one replacement. If no type that costs less than the candidates
    holds them together, no simulation can place them. Nor can one if the largest such type and all free capacity
    together are too small.
    """

    def __init__(self, simulator: Simulator, before: Bound | None = None) -> None:
        """`before` is the bound of the cluster before the latest command: what did not change is taken from it."""
        cluster = self._cluster = simulator.cluster
        takers = [node for node in cluster.nodes if node.tracked and not node.marked]
        free = {node.name: tuple(max(0, node.place.available.get(name, 0)) for name in RESOURCES) for node in takers}
        self._room = free
        self._free = [sorted(((room[n], name) for name, room in free.items()), reverse=True) for n in AXES]
        self._all_free = [sum(room[n] for room in free.values()) for n in AXES]
        if before is None:
            self._needs: dict[str, list[Amounts]] = {}
            self._together: dict[str, tuple[Amounts, Amounts]] = {}
            pools = [each for each in usable_pools(cluster.pools) if each.catalogue]
            asked = [
                (simulator.market(each.pool.name), Requirements.of_specs(each.pool.requirements)) for each in pools
            ]
            self._offers, self._largest = _offers(tuple(asked))
        else:
            self._needs, self._together = before._needs, before._together
            self._offers, self._largest = before._offers, before._largest

    def excludes(self, candidates: Sequence[Candidate]) -> bool:
        """Whether these nodes certainly cannot go."""
        names = frozenset(candidate.name for candidate in candidates)
        limit = math.fsum(candidate.price for candidate in candidates)
        cheaper = bisect_left(self._offers, (limit,))
        largest = self._largest[cheaper - 1] if cheaper else NOTHING
        sizes = [self._sizes(candidate) for candidate in candidates]
        for n in AXES:
            left = self._all_free[n] - sum(self._room.get(name, NOTHING)[n] for name in names)
            if sum(total[n] for total, _ in sizes) > left + largest[n]:
                return True
        most = tuple(self._most_free(n, names) for n in AXES)
        homeless = [
            need
            for each, (_, top) in zip(candidates, sizes, strict=True)
            if any(map(gt, top, most))
            for need in self._needs[each.name]
            if any(map(gt, need, most))
        ]
        if not homeless:
            return False
        needs = _sum(homeless)
        first = max(bisect_left(self._largest, needs[n], hi=cheaper, key=itemgetter(n)) for n in AXES)
        return not any(all(map(le, needs, self._offers[number][1])) for number in range(first, cheaper))

    def _most_free(self, n: int, without: frozenset[str]) -> int:
        return next((amount for amount, name in self._free[n] if name not in without), 0)

    def _sizes(self, candidate: Candidate) -> tuple[Amounts, Amounts]:
        """What the moving pods of a node need together, and the most that one of them needs."""
        found = self._together.get(candidate.name)
        if found is None:
            rules, shapes = self._cluster.eviction_rules, self._cluster.shapes
            requests = [shapes[pod.shape].requests for pod in candidate.pods if rules.moves(pod)]
            needs = [tuple(each.get(name, 0) for name in RESOURCES) for each in requests]
            top = tuple(max((need[n] for need in needs), default=0) for n in AXES)
            self._needs[candidate.name] = needs
            found = self._together[candidate.name] = _sum(needs), top
        return found


def _sum(needs: Sequence[Amounts]) -> Amounts:
    return tuple(sum(need[n] for need in needs) for n in AXES)


Offer = tuple[float, Amounts]
"""The lowest price of a type (USD per hour), and its room."""


@lru_cache(maxsize=MAX_KEPT)
def _offers(asked: tuple[tuple[Market, Requirements], ...]) -> tuple[list[Offer], list[Amounts]]:
    """The types that NodePools may launch, the cheapest first; and the largest amounts of all up to each of them."""
    found: list[Offer] = []
    for market, requirements in asked:
        rooms = _rooms(market.compiled)
        found += [(price, rooms[number]) for price, number in market.by_price(requirements)]
    found.sort()
    return found, list(accumulate((room for _, room in found), lambda one, other: tuple(map(max, one, other))))


def _rooms(catalogue: CompiledCatalogue) -> list[Amounts]:
    """The allocatable amounts of each type, by its number."""

    def rooms() -> list[Amounts]:
        allocatable = (kind.allocatable() for kind in catalogue.types)
        return [tuple(room.get(name, 0) for name in RESOURCES) for room in allocatable]

    return catalogue.once("rooms", rooms)
