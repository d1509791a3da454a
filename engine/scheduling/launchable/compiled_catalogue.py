"""Instance types compiled for the search: numbered, with sets of types as bitsets.

Bit i of every mask stands for `CompiledCatalogue.types[i]`. Types are numbered by name, so nothing depends on the order
in which a cloud lists its types. A filter is then a few ANDs:

* Labels: for each key and value the types that have it; for each key the types that know it.
* Resources: for each resource the types sorted by amount, with a mask of all types from each step on. One bisection
  gives the types that have at least an amount.
* Offerings: a *slot* groups the offerings that requirements cannot tell apart (zone, capacity type, zone id,
  reservation, tenancy). So a few masks hold all offerings of a catalogue.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.requirements import NEGATIVE, Requirement, Requirements
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import (
    CAPACITY_TYPE,
    DEDICATED,
    DEFAULT_TENANCY,
    INSTANCE_TYPE,
    OF_RESERVATIONS,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
    TENANCY,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
)
from kerf.engine.model.labels import normalise as stable_key
from kerf.engine.scheduling.made_once import once

MAX_CACHED_CATALOGUES = 16
"""How many compiled catalogues are kept for equal ones."""
MAX_CACHED_PRICE_ORDERS = 64
"""How many orders of a catalogue's types by price are kept."""
MAX_CACHED_AMOUNTS = 10_000
"""For how many sets of types a catalogue remembers the most that one of them has."""
MAX_MADE = 128
"""How many things that were made of a catalogue are kept with it."""

TYPES_PER_PART = 16
"""How many types of an order by price are looked at together."""

_Made = TypeVar("_Made")

PricedNumber = tuple[float, int]
"""A price (USD per hour), and the number of a type."""
PricedPart = tuple[int, tuple[PricedNumber, ...]]
"""A part of an order by price, after the set of its types."""


def bits(mask: int) -> Iterator[int]:
    """The numbers of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class AmountLevels:
    """The types by their amount of one resource."""

    __slots__ = ("_all", "_masks", "amounts")

    def __init__(self, amounts: list[int]) -> None:
        """`amounts[i]` is what type i has."""
        by_amount: dict[int, int] = {}
        for index, amount in enumerate(amounts):
            by_amount[amount] = by_amount.get(amount, 0) | 1 << index
        self.amounts = sorted(by_amount)
        self._masks = [0] * (len(self.amounts) + 1)
        for step in range(len(self.amounts) - 1, -1, -1):
            self._masks[step] = self._masks[step + 1] | by_amount[self.amounts[step]]
        self._all = self._masks[0]

    def at_least(self, amount: int) -> int:
        return self._masks[bisect_left(self.amounts, amount)]

    def at_most(self, amount: int) -> int:
        return self._all & ~self._masks[bisect_left(self.amounts, amount + 1)]

    def highest(self, mask: int) -> int:
        """The largest amount among the types of a non-empty mask."""
        low, high = 0, len(self.amounts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._masks[middle] & mask:
                low = middle
            else:
                high = middle - 1
        return self.amounts[low]


class LabelIndex:
    """The types by their values of one label."""

    __slots__ = ("absent", "known", "values")

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.absent = 0  # types that say DoesNotExist
        self.known = 0  # types that say anything at all

    def add(self, bit: int, values: tuple[str, ...]) -> None:
        self.known |= bit
        if not values:
            self.absent |= bit
        for value in values:
            self.values[value] = self.values.get(value, 0) | bit

    def admitted(self, requirement: Requirement) -> int:
        """The types that know the label and do not conflict with `requirement` (S-103, S-18)."""
        mask = self.absent if requirement.operator in NEGATIVE else 0
        if not requirement.complement:
            for value in requirement.values:
                mask |= self.values.get(value, 0)
            return mask
        for value, types in self.values.items():
            if requirement.has(value):
                mask |= types
        return mask


class OfferingSlot(Struct, frozen=True):
    """All offerings that differ only in instance type and price. `types`: those with an available offering. `prices`,
    `capacities` (launches left in a reservation): by type number, also for unavailable offerings. `tenancy`: "" in a
    catalogue without dedicated offerings. `interruptible`: "true" or "false", "" for what is not reserved."""

    zone: str
    capacity_type: str
    zone_id: str
    reservation_id: str
    reservation_type: str
    interruptible: str
    tenancy: str
    types: int
    prices: dict[int, float]
    capacities: dict[int, int]

    def requirements(self) -> Requirements:
        """What the offering demands of a claim (S-105)."""
        return Requirements(
            Requirement(key, False, frozenset([value]) if value else frozenset())
            for key, value in (
                (ZONE, self.zone),
                (CAPACITY_TYPE, self.capacity_type),
                (ZONE_ID, self.zone_id),
                (RESERVATION_ID, self.reservation_id),
                (RESERVATION_TYPE, self.reservation_type),
                (RESERVATION_INTERRUPTIBLE, self.interruptible),
                (TENANCY, self.tenancy),
            )
            if value or key in OF_RESERVATIONS
        )


def admitted_slots(
    slots: Sequence[OfferingSlot], demands: Sequence[Requirements], requirements: Requirements
) -> tuple[int, ...]:
    """The numbers of the slots that a claim with these requirements may use (S-105). Dedicated hardware is only for
    claims that refuse shared (A-230). `demands`: for each slot, what it demands of a claim."""
    shared = requirements.get(TENANCY).has(DEFAULT_TENANCY)
    return tuple(
        number
        for number, demanded in enumerate(demands)
        if requirements.compatible(demanded, WELL_KNOWN) and not (shared and slots[number].tenancy == DEDICATED)
    )


class CompiledCatalogue:
    """One catalogue, ready for the search; see the module's docstring. It never changes."""

    __slots__ = (
        "_most",
        "allocatable",
        "by_name",
        "capacity",
        "everything",
        "labels",
        "made",
        "names",
        "numbers",
        "orders",
        "overlaid",
        "slots",
        "sound",
        "types",
    )

    def __init__(self, catalogue: Catalogue) -> None:
        self.types: tuple[InstanceType, ...] = tuple(
            sorted(catalogue.types, key=lambda instance_type: instance_type.name)
        )
        self.by_name = {instance_type.name: instance_type for instance_type in self.types}
        self.names = tuple(instance_type.name for instance_type in self.types)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.everything = (1 << len(self.types)) - 1
        self.overlaid = sum(1 << number for number, instance_type in enumerate(self.types) if instance_type.overlaid)
        allocatable = [instance_type.allocatable() for instance_type in self.types]
        self.allocatable = _amount_levels(allocatable)
        self.capacity = _amount_levels([instance_type.capacity for instance_type in self.types])
        self.sound = sum(1 << i for i, resources in enumerate(allocatable) if min(resources.values(), default=0) >= 0)
        self.labels = _label_indexes(self.types)
        self.slots = _offering_slots(self.types)
        self.orders: OrderedDict[tuple[tuple[int, int], ...], tuple[PricedNumber, ...]] = OrderedDict()
        self._most: dict[int, tuple[int, int, int]] = {}
        self.made: OrderedDict[Hashable, Any] = OrderedDict()

    def once(self, what: Hashable, make: Callable[[], _Made]) -> _Made:
        """Something made of this catalogue, made only once: one question after another has the same catalogues. `what`:
        what it is, and everything else that it depends on."""
        found: _Made | None = self.made.get(what)
        if found is None:
            found = self.made[what] = make()
            if len(self.made) > MAX_MADE:
                self.made.popitem(last=False)
        self.made.move_to_end(what)
        return found

    def by_price(self, offers: tuple[tuple[int, int], ...]) -> tuple[PricedNumber, ...]:
        """All types as (price, number), the cheapest first, then by name. `offers`: the usable offerings, as (number of
        a slot, types). A type without one comes last, at infinity. Some results are kept, because searches ask for them
        again and again."""
        order = self.orders.get(offers)
        if order is None:
            best: dict[int, float] = {}
            for number, mask in offers:
                for type_number, price in self.slots[number].prices.items():
                    if mask >> type_number & 1 and price < best.get(type_number, float("inf")):
                        best[type_number] = price
            order = tuple(sorted((best.get(i, float("inf")), i) for i in range(len(self.types))))
            self.orders[offers] = order
            if len(self.orders) > MAX_CACHED_PRICE_ORDERS:
                self.orders.popitem(last=False)
        return order

    def most(self, types: int) -> tuple[int, int, int]:
        """The most CPU, memory and pods that one of these types has room for; 0 of what none names."""
        most = self._most.get(types)
        if most is None:
            if len(self._most) >= MAX_CACHED_AMOUNTS:
                self._most.clear()
            cpu, memory, pods = (
                self.allocatable[name].highest(types) if name in self.allocatable else 0
                for name in ("cpu", "memory", "pods")
            )
            most = self._most[types] = cpu, memory, pods
        return most

    def fitting(self, requests: Resources) -> int:
        """The types whose allocatable holds these requests (S-75)."""
        mask = self.sound
        for name, amount in requests.items():
            levels = self.allocatable.get(name)
            if levels is not None:
                mask &= levels.at_least(amount)
            elif amount > 0:
                return 0
        return mask

    def admitting(self, requirement: Requirement) -> int:
        """The types that do not conflict with one requirement. A type that does not know the label does not conflict
        (S-103)."""
        index = self.labels.get(requirement.key)
        if index is None:
            return self.everything
        return index.admitted(requirement) | self.everything & ~index.known

    def admitting_all(self, requirements: Iterable[Requirement]) -> int:
        """The types that conflict with none of the requirements."""
        types = self.everything
        for requirement in requirements:
            types &= self.admitting(requirement)
        return types

    def distinct_values(self, key: str, types: int) -> int:
        """How many values of a label occur among these types (S-108)."""
        index = self.labels.get(key)
        return 0 if index is None else sum(1 for mask in index.values.values() if mask & types)


def in_parts(order: Sequence[PricedNumber]) -> list[PricedPart]:
    """The order cut into parts, each with the set of its types."""
    parts = (tuple(order[start : start + TYPES_PER_PART]) for start in range(0, len(order), TYPES_PER_PART))
    return [(sum(1 << number for _, number in part), part) for part in parts]


def _amount_levels(amounts: list[Resources]) -> dict[str, AmountLevels]:
    names = sorted({name for resources in amounts for name in resources})
    return {name: AmountLevels([resources.get(name, 0) for resources in amounts]) for name in names}


def _label_indexes(types: tuple[InstanceType, ...]) -> dict[str, LabelIndex]:
    labels: dict[str, LabelIndex] = {}
    for number, instance_type in enumerate(types):
        for key, values in {INSTANCE_TYPE: (instance_type.name,), **instance_type.requirements}.items():
            labels.setdefault(stable_key(key), LabelIndex()).add(1 << number, values)
    return labels


def _offering_slots(types: tuple[InstanceType, ...]) -> tuple[OfferingSlot, ...]:
    """The slots in a fixed order. If one type has two offerings that are alike, which is unusual, they go to two
    slots."""
    split = any(offer.tenancy == DEDICATED for instance_type in types for offer in instance_type.offerings)
    by_slot: dict[tuple[str, str, str, str, str, str, str, int], list[tuple[int, Offering]]] = {}
    for number, instance_type in enumerate(types):
        seen: dict[tuple[str, str, str, str, str, str, str], int] = {}
        for offer in instance_type.offerings:
            said = (
                offer.zone,
                offer.capacity_type,
                offer.zone_id,
                offer.reservation_id,
                offer.reservation_type,
                str(offer.interruptible).lower() if offer.capacity_type == RESERVED else "",
                offer.tenancy if split else "",
            )
            seen[said] = seen.get(said, -1) + 1
            by_slot.setdefault((*said, seen[said]), []).append((number, offer))
    slots = []
    for key, offers in sorted(by_slot.items(), key=lambda item: item[0]):
        zone, capacity_type, zone_id, reservation_id, reservation_type, interruptible, tenancy, _ = key
        slots.append(
            OfferingSlot(
                zone,
                capacity_type,
                zone_id,
                reservation_id,
                reservation_type,
                interruptible,
                tenancy,
                sum(1 << number for number, offer in offers if offer.available),
                {number: offer.price for number, offer in offers},
                {number: offer.reservation_capacity for number, offer in offers if offer.reservation_id},
            )
        )
    return tuple(slots)


def compile_catalogue(catalogue: Catalogue) -> CompiledCatalogue:
    """Number and index a catalogue. Costs some 20 µs a type; `compiled_catalogue` keeps the results."""
    return CompiledCatalogue(catalogue)


_cache: OrderedDict[str, tuple[Catalogue, CompiledCatalogue]] = OrderedDict()


def compiled_catalogue(digest: str, catalogue: Catalogue) -> CompiledCatalogue:
    """`compile_catalogue`, kept for as long as the catalogue is in use: where NodeOverlays tell NodePools apart, each
    has a catalogue of its own, and one question is about all of them in turn."""
    return once(catalogue, CompiledCatalogue, lambda: _compiled(digest, catalogue))


def _compiled(digest: str, catalogue: Catalogue) -> CompiledCatalogue:
    """That of an equal catalogue, by digest, of which some are kept. An entry serves only the catalogue that it was
    made from, so a wrong digest costs time and changes no result."""
    entry = _cache.get(digest)
    compiled = entry[1] if entry is not None and entry[0] == catalogue else compile_catalogue(catalogue)
    _cache[digest] = catalogue, compiled
    _cache.move_to_end(digest)
    while len(_cache) > MAX_CACHED_CATALOGUES:
        _cache.popitem(last=False)
    return compiled
