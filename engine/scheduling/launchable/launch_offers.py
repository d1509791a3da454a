"""Which offerings one launch may use (A-220…A-230). The decider chooses them, so that the record says what was asked
for."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.record.decisions import Offer

_EXOTIC_RESOURCES = ("aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "amd.com/gpu", "nvidia.com/gpu",
                     "habana.ai/gaudi")  # fmt: skip


DEFAULT_RESERVATION = "default"
"""The kind of a reservation that is no capacity block (A-54)."""
BLOCKS = (False, True, "capacity-block")
"""What `_rank` says of capacity blocks. A launch into one takes the cheapest, whatever its type (A-223)."""


class LaunchChoice(Struct, frozen=True):
    """`offers`: cheapest first; empty if no offering is left. `reservation`: the one that a launch of reserved capacity
    counts against. `tenancy`: default or dedicated."""

    capacity_type: str
    offers: tuple[Offer, ...]
    reservation: str = ""
    tenancy: str = lbl.DEFAULT_TENANCY


def choose_offers(
    catalogue: Catalogue,
    names: tuple[str, ...],
    requirements: Requirements,
    unavailable: frozenset[tuple[str, str, str]],
    *,
    max_types: int,
) -> LaunchChoice:
    """The offers for a claim that can still become any of `names`. `unavailable`: as in `Problem`.

    One launch has one capacity type (A-229): reserved before spot before on-demand. If it fails, the next claim falls
    back to another.
    """
    types_allowed, tenancy = frozenset(names), tenancy_of(requirements)
    admission = _Admission(requirements, unavailable)
    reserved = _reserved(catalogue, types_allowed, requirements, admission, tenancy)
    if reserved is not None:
        return reserved
    if any(not asked.met_by(None) for key in lbl.OF_RESERVATIONS if (asked := requirements.find(key)) is not None):
        return LaunchChoice(lbl.RESERVED, (), tenancy=tenancy)  # nothing else has these labels
    pools = {
        t.name: usable
        for t in catalogue.types
        if t.name in types_allowed and (usable := _usable(t, admission, tenancy))
    }
    types = {t.name: t for t in catalogue.types if t.name in pools}
    if not requirements.min_values:
        pools = _without_dear_spot(_without_exotic(pools, types))
    cheapest = sorted(pools, key=lambda name: (min(o.price for o in pools[name]), name))[:max_types]
    spot = any(o.capacity_type == lbl.SPOT for name in cheapest for o in pools[name])
    capacity_type = lbl.SPOT if spot else lbl.ON_DEMAND
    offers = [
        Offer(name, o.zone, o.price) for name in cheapest for o in pools[name] if o.capacity_type == capacity_type
    ]
    by_price = sorted(offers, key=lambda o: (o.price, o.instance_type, o.zone))
    return LaunchChoice(capacity_type, tuple(by_price), tenancy=tenancy)


def tenancy_of(requirements: Requirements) -> str:
    """The tenancy of a launch: shared hardware if the claim allows it, else dedicated (A-230)."""
    asked = requirements.get(lbl.TENANCY)
    return lbl.DEDICATED if asked.has(lbl.DEDICATED) and not asked.has(lbl.DEFAULT_TENANCY) else lbl.DEFAULT_TENANCY


def offerings_of(instance_type: InstanceType, tenancy: str) -> tuple[Offering, ...]:
    """The type's offerings of a tenancy; all of them in a catalogue that does not tell tenancies apart."""
    return tuple(o for o in instance_type.offerings if o.tenancy == tenancy) or instance_type.offerings


def _reserved(
    catalogue: Catalogue,
    types_allowed: frozenset[str],
    requirements: Requirements,
    admission: _Admission,
    tenancy: str,
) -> LaunchChoice | None:
    """One offering of one reservation, because a launch names one: the cheapest; of equal prices a default reservation
    before a capacity block before an interruptible one (A-222), then the one with most capacity left (A-224). Those of
    metal and accelerated types come last among their kind (A-225). All reservations are of shared hardware (A-230)."""
    ids, kinds = requirements.get(lbl.RESERVATION_ID), requirements.get(lbl.RESERVATION_TYPE)
    interruptible = requirements.get(lbl.RESERVATION_INTERRUPTIBLE)
    reserved = [
        (o.price, _rank(o), t.name, o.zone, -o.reservation_capacity, o.reservation_id)
        for t in catalogue.types
        if t.name in types_allowed
        for o in t.offerings
        if o.capacity_type == lbl.RESERVED
        and o.tenancy == tenancy
        and o.reservation_capacity > 0
        and ids.has(o.reservation_id)
        and kinds.has(o.reservation_type or DEFAULT_RESERVATION)
        and interruptible.has("true" if o.interruptible else "false")
        and admission.admits(o, t.name)
    ]
    if not reserved:
        return None
    cheapest = min(reserved)
    if not requirements.min_values and cheapest[1] != BLOCKS:
        exotic = {t.name for t in catalogue.types if t.name in types_allowed and _exotic(t)}
        plain = (offer for offer in reserved if offer[1] == cheapest[1] and offer[2] not in exotic)
        cheapest = min(plain, default=cheapest)
    price, _, name, zone, _, reservation = cheapest
    return LaunchChoice(lbl.RESERVED, (Offer(name, zone, price),), reservation)


def _rank(o: Offering) -> tuple[bool, bool, str]:
    kind = o.reservation_type or DEFAULT_RESERVATION
    return o.interruptible, kind != DEFAULT_RESERVATION, kind


def _usable(instance_type: InstanceType, admission: _Admission, tenancy: str) -> list[Offering]:
    return [
        o
        for o in offerings_of(instance_type, tenancy)
        if o.capacity_type != lbl.RESERVED and admission.admits(o, instance_type.name)
    ]


class _Admission:
    """Which offerings meet the requirements and are not known to be unavailable. A launch asks about thousands of
    offerings, in few places."""

    def __init__(self, requirements: Requirements, unavailable: frozenset[tuple[str, str, str]]) -> None:
        self._requirements, self._unavailable = requirements, unavailable
        self._met: dict[tuple[str, str, str], bool] = {}  # by capacity type, zone and its id

    def admits(self, o: Offering, name: str) -> bool:
        """`name`: that of the instance type."""
        if not o.available:
            return False
        place = o.capacity_type, o.zone, o.zone_id
        met = self._met.get(place)
        if met is None:
            met = self._met[place] = self._meets(*place)
        return met and not is_unavailable(self._unavailable, o.capacity_type, name, o.zone)

    def _meets(self, capacity_type: str, zone: str, zone_id: str) -> bool:
        requirements = self._requirements
        return (
            requirements.get(lbl.ZONE).has(zone)
            and requirements.get(lbl.CAPACITY_TYPE).has(capacity_type)
            and (not zone_id or requirements.get(lbl.ZONE_ID).has(zone_id))
        )


def is_unavailable(unavailable: frozenset[tuple[str, str, str]], kind: str, name: str, zone: str) -> bool:
    """Whether the offering, all of its capacity type or all in its zone is known to lack capacity (A-212)."""
    return not unavailable.isdisjoint(((kind, name, zone), (kind, "", ""), ("", "", zone)))


def _without_exotic(pools: dict[str, list[Offering]], types: dict[str, InstanceType]) -> dict[str, list[Offering]]:
    """The types without metal and accelerated ones, unless no others are left (A-225)."""
    plain = {name: offers for name, offers in pools.items() if not _exotic(types[name])}
    return plain or pools


def _exotic(instance_type: InstanceType) -> bool:
    size = instance_type.name.partition(".")[2]
    return "metal" in size or any(instance_type.capacity.get(r) for r in _EXOTIC_RESOURCES)


def _without_dear_spot(pools: dict[str, list[Offering]]) -> dict[str, list[Offering]]:
    """The offerings without spot ones that cost more than the cheapest on-demand offering (A-226)."""
    every = [o for offers in pools.values() for o in offers]
    on_demand = [o.price for o in every if o.capacity_type == lbl.ON_DEMAND]
    if not on_demand or len(on_demand) == len(every):
        return pools
    bound = min(on_demand)
    kept = {
        name: [o for o in offers if o.capacity_type != lbl.SPOT or o.price <= bound] for name, offers in pools.items()
    }
    return {name: offers for name, offers in kept.items() if offers}
