"""Prices of what a replacement may become: cheapest offering, worst launch price, capacity types (D-74, D-82, D-99,
S-204…S-207)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import or_

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import ON_DEMAND, RESERVED, SPOT
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue, admitted_slots, compiled_catalogue
from kerf.engine.scheduling.launchable.templates import available_types

LAUNCH_ORDER = (RESERVED, SPOT, ON_DEMAND)
MAX_REQUIREMENTS = 4_096
"""For how many requirements a market keeps its answers."""

Unavailable = frozenset[tuple[str, str, str]]
"""Offerings known to lack capacity, as (capacity type, instance type, zone)."""


class Market:
    """The offerings of one catalogue, without those known to lack capacity. It never changes."""

    def __init__(self, compiled: CompiledCatalogue, unavailable: Unavailable) -> None:
        self.compiled = compiled
        self._available = available_types(compiled, unavailable)
        self._demands = tuple(slot.requirements() for slot in compiled.slots)
        self._usable: dict[Requirements, tuple[int, ...]] = {}
        self._launch_prices: dict[Requirements, dict[str, float]] = {}
        self._below: dict[Requirements, tuple[list[float], list[int]]] = {}  # prices, and the types before each of them

    @cached_property
    def reserved(self) -> bool:
        """Whether it has reserved capacity."""
        return any(slot.capacity_type == RESERVED for slot in self.compiled.slots)

    def usable(self, requirements: Requirements) -> tuple[int, ...]:
        """The slots whose offerings these requirements admit."""
        found = self._usable.get(requirements)
        if found is None:
            if len(self._usable) >= MAX_REQUIREMENTS:
                self._usable.clear()
            found = self._usable[requirements] = admitted_slots(self.compiled.slots, self._demands, requirements)
        return found

    def by_price(self, requirements: Requirements) -> tuple[tuple[float, int], ...]:
        """All types as (lowest price of an available offering, number in the catalogue), the cheapest first."""
        return self.compiled.by_price(tuple((slot, self._available[slot]) for slot in self.usable(requirements)))

    def below(self, limit: float, requirements: Requirements) -> int:
        """The types that these requirements allow and that have an available offering below the limit (USD per
        hour)."""
        found = self._below.get(requirements)
        if found is None:
            if len(self._below) >= MAX_REQUIREMENTS:
                self._below.clear()
            allowed = self.compiled.admitting_all(requirements)
            order = [(price, number) for price, number in self.by_price(requirements) if allowed >> number & 1]
            types = list(accumulate((1 << number for _, number in order), or_, initial=0))
            found = self._below[requirements] = [price for price, _ in order], types
        prices, types = found
        return types[bisect_left(prices, limit)]

    def cheapest(self, name: str, requirements: Requirements) -> float:
        """The lowest price of an available offering of a type; infinity for none (S-204)."""
        return min((price for _, price in self._offers(name, requirements)), default=math.inf)

    def cheapest_at_all(self, name: str, requirements: Requirements) -> float | None:
        """The lowest price of an offering of a type, available or not; None if it has none (D-74)."""
        number = self.compiled.numbers.get(name, -1)
        slots = self.compiled.slots
        prices = (slots[slot].prices.get(number) for slot in self.usable(requirements))
        return min((price for price in prices if price is not None), default=None)

    def launch_prices(self, names: Iterable[str], requirements: Requirements) -> list[float]:
        """What a launch of each type may cost at worst: the dearest zone of the capacity type that is tried first
        (D-99, S-206)."""
        if len(self._launch_prices) >= MAX_REQUIREMENTS:
            self._launch_prices.clear()
        known = self._launch_prices.setdefault(requirements, {})
        found = []
        for name in names:
            price = known.get(name)
            if price is None:
                price = known[name] = _at_worst(self._offers(name, requirements))
            found.append(price)
        return found

    def capacity_types(self, names: Iterable[str], requirements: Requirements) -> tuple[str, ...]:
        """The capacity types of the available offerings of these types."""
        return tuple(sorted({kind for name in names for kind, _ in self._offers(name, requirements)}))

    def meets_min_values(self, names: Iterable[str], requirements: Requirements) -> bool:
        """Whether these types have as many distinct values as minValues asks for; true of no types at all (S-108,
        S-207)."""
        mask = sum(1 << self.compiled.numbers[name] for name in names)
        least = requirements.min_values
        return not mask or all(self.compiled.distinct_values(key, mask) >= count for key, count in least)

    def _offers(self, name: str, requirements: Requirements) -> list[tuple[str, float]]:
        """(capacity type, price) of the available offerings of a type."""
        number = self.compiled.numbers.get(name)
        if number is None:
            return []
        slots = self.compiled.slots
        return [
            (slots[slot].capacity_type, slots[slot].prices[number])
            for slot in self.usable(requirements)
            if self._available[slot] >> number & 1
        ]


def market_of(digest: str, catalogue: Catalogue, unavailable: Unavailable) -> Market:
    """The market of a catalogue, kept with it."""
    compiled = compiled_catalogue(digest, catalogue)
    return compiled.once((Market, unavailable), lambda: Market(compiled, unavailable))


def _at_worst(offers: Sequence[tuple[str, float]]) -> float:
    for kind in LAUNCH_ORDER:
        prices = [price for capacity_type, price in offers if capacity_type == kind]
        if prices:
            return max(prices)
    return math.inf
