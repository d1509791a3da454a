"""Which offerings one launch may draw from (A-220…A-230): chosen here, so that the record says what was asked for."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model import labels as lbl
from kerf.engine.model.instances import Catalogue, InstanceType, Offering
from kerf.engine.record.decisions import Offer
from kerf.engine.scheduling.requirements import Requirements

_EXOTIC_RESOURCES = ("aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "amd.com/gpu", "nvidia.com/gpu",
                     "habana.ai/gaudi")  # fmt: skip


class Choice(Struct, frozen=True):
    """`offers` cheapest first; empty when no offering is left."""

    capacity_type: str
    offers: tuple[Offer, ...]


def choose(
    catalogue: Catalogue,
    names: tuple[str, ...],
    requirements: Requirements,
    unavailable: frozenset[tuple[str, str, str]],
    *,
    max_types: int,
) -> Choice:
    """The offers for a claim that may still become any of `names`.

    `unavailable` as in `Problem`. One launch has one capacity type (A-229); falling back to another happens on the next
    claim. Reserved offerings come with the scheduling issue.
    """
    wanted = frozenset(names)
    pools = {
        t.name: usable
        for t in catalogue.types
        if t.name in wanted and (usable := _usable(t, requirements, unavailable))
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
    return Choice(capacity_type, tuple(sorted(offers, key=lambda o: (o.price, o.instance_type, o.zone))))


def _usable(
    instance_type: InstanceType, requirements: Requirements, unavailable: frozenset[tuple[str, str, str]]
) -> list[Offering]:
    zones, zone_ids = requirements.get(lbl.ZONE), requirements.get(lbl.ZONE_ID)
    kinds = requirements.get(lbl.CAPACITY_TYPE)
    return [
        o
        for o in instance_type.offerings
        if o.available
        and o.capacity_type != lbl.RESERVED
        and zones.has(o.zone)
        and kinds.has(o.capacity_type)
        and (not o.zone_id or zone_ids.has(o.zone_id))
        and not is_unavailable(unavailable, o.capacity_type, instance_type.name, o.zone)
    ]


def is_unavailable(unavailable: frozenset[tuple[str, str, str]], kind: str, name: str, zone: str) -> bool:
    """Whether the offering, or all of its capacity type, is known to lack capacity (A-212)."""
    return (kind, name, zone) in unavailable or (kind, "", "") in unavailable


def _without_exotic(pools: dict[str, list[Offering]], types: dict[str, InstanceType]) -> dict[str, list[Offering]]:
    """A-225: metal and accelerated types only when nothing else is left."""
    plain = {name: offers for name, offers in pools.items() if not _exotic(types[name])}
    return plain or pools


def _exotic(instance_type: InstanceType) -> bool:
    size = instance_type.name.partition(".")[2]
    return "metal" in size or any(instance_type.capacity.get(r) for r in _EXOTIC_RESOURCES)


def _without_dear_spot(pools: dict[str, list[Offering]]) -> dict[str, list[Offering]]:
    """A-226: spot above the cheapest on-demand price is no bargain."""
    every = [o for offers in pools.values() for o in offers]
    on_demand = [o.price for o in every if o.capacity_type == lbl.ON_DEMAND]
    if not on_demand or len(on_demand) == len(every):
        return pools
    bound = min(on_demand)
    kept = {
        name: [o for o in offers if o.capacity_type != lbl.SPOT or o.price <= bound] for name, offers in pools.items()
    }
    return {name: offers for name, offers in kept.items() if offers}
