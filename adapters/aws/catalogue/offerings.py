"""Puts catalogues together of facts, settings, zones and prices (A-139, A-199, A-200, A-209, A-216). Pure.

`offline_catalogue` needs neither a cloud nor boto3; `kerf simulate` and the benchmarks use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import InstanceTypeFacts, regional_prices, tables
from kerf.adapters.aws.catalogue.instance_types import EFA, NodeSettings, compatible, instance_type
from kerf.adapters.aws.catalogue.pricing import SPOT_DISCOUNT, Prices, offline_prices, spot_model
from kerf.engine.errors import InputError
from kerf.engine.model import labels
from kerf.engine.model.instance_types import Catalogue, Offering


class Reservation(Struct, frozen=True):
    """A capacity reservation of the class's status (A-54), with its number of free instances (A-125)."""

    id: str
    instance_type: str
    zone: str
    available: int
    kind: str = "default"
    expiring: bool = False
    interruptible: bool = False


class Market(Struct, frozen=True):
    """What a region offers: prices, and the zones of each type (None: every type everywhere)."""

    region: str
    facts: Mapping[str, InstanceTypeFacts]
    prices: Prices
    zones_of: Mapping[str, frozenset[str]] | None = None


def catalogue(
    market: Market,
    settings: NodeSettings,
    zones: Mapping[str, str],
    *,
    reservations: Sequence[Reservation] = (),
    names: Iterable[str] | None = None,
    capacity_types: Sequence[str] = (labels.ON_DEMAND, labels.SPOT),
    shifted: Sequence[str] = (),
) -> Catalogue:
    """The types that a NodeClass with subnets in `zones` (zone → zone id) can launch, sorted by name. In zones whose id
    is `shifted` nothing is available (A-215).

    Zones without a subnet of the class and types without an offering are left out: nothing could be bought
    there.
    """
    known = tables()
    types = []
    for name in sorted(market.facts if names is None else set(names)):
        facts = market.facts[name]
        offered = offerings(market, facts, settings, zones, capacity_types)
        offered += dedicated_offerings(market, facts, settings, zones, capacity_types)
        offered += reserved_offerings(market, facts, settings, zones, reservations)
        offered = tuple(replace(one, available=False) if one.zone_id in shifted else one for one in offered)
        if offered:
            types.append(
                instance_type(
                    facts,
                    settings,
                    offered,
                    region=market.region,
                    branch_interfaces=known.branch_interfaces.get(name, 0),
                    network_bandwidth=known.network_bandwidth.get(name, 0),
                )
            )
    away = tuple(sorted(set(shifted) & set(zones.values())))
    on_request = (EFA,) if not settings.interfaces and any(kind.capacity.get(EFA) for kind in types) else ()
    return Catalogue(types=tuple(types), source=market.prices.source, shifted=away, on_request=on_request)


def offerings(
    market: Market,
    facts: InstanceTypeFacts,
    settings: NodeSettings,
    zones: Mapping[str, str],
    capacity_types: Sequence[str],
) -> tuple[Offering, ...]:
    """One offering for each zone and capacity type, available by A-200 (A-199). The engine remembers which of them
    lately had no capacity (A-212)."""
    fits = compatible(facts, settings)
    return tuple(
        Offering(
            zone=zone,
            capacity_type=kind,
            price=price or 0.0,
            available=fits and price is not None,
            zone_id=zones[zone],
        )
        for kind in sorted(set(capacity_types) & set(facts.usage))
        for zone in sorted(zones)
        if market.zones_of is None or zone in market.zones_of.get(facts.name, ())
        for price in [market.prices.of(facts.name, zone, kind)]
        if fits or price is not None  # an overlay may set the price of what has none, and so sell it
    )


def dedicated_offerings(
    market: Market,
    facts: InstanceTypeFacts,
    settings: NodeSettings,
    zones: Mapping[str, str],
    capacity_types: Sequence[str],
) -> tuple[Offering, ...]:
    """The on-demand offerings on dedicated hardware, at their own price (A-216). Without a price there is none: nothing
    stands in for it."""
    price = market.prices.dedicated.get(facts.name)
    if price is None or labels.ON_DEMAND not in capacity_types:
        return ()
    shared = offerings(market, facts, settings, zones, (labels.ON_DEMAND,))
    fits = compatible(facts, settings)
    return tuple(replace(offering, price=price, available=fits, tenancy=labels.DEDICATED) for offering in shared)


def reserved_offerings(
    market: Market,
    facts: InstanceTypeFacts,
    settings: NodeSettings,
    zones: Mapping[str, str],
    reservations: Sequence[Reservation],
) -> tuple[Offering, ...]:
    """One offering for each reservation of this type, at a ten-millionth of the on-demand price (A-209)."""
    fits = compatible(facts, settings)
    price = market.prices.on_demand.get(facts.name, 0.0) / 10_000_000
    return tuple(
        Offering(
            zone=held.zone,
            capacity_type=labels.RESERVED,
            price=price,
            available=fits and held.available > 0 and not held.expiring,
            zone_id=zones[held.zone],
            reservation_id=held.id,
            reservation_type=held.kind,
            reservation_capacity=held.available,
            interruptible=held.interruptible,
        )
        for held in sorted(reservations, key=lambda held: held.id)
        if held.instance_type == facts.name and held.zone in zones
    )


def offline_catalogue(
    *,
    zones: Sequence[str] = ("us-west-2a", "us-west-2b", "us-west-2c"),
    zone_ids: Mapping[str, str] = {},
    region: str = "us-west-2",
    names: Iterable[str] | None = None,
    capacity_types: Sequence[str] = (labels.ON_DEMAND, labels.SPOT),
    spot_discount: float = SPOT_DISCOUNT,
    settings: NodeSettings | None = None,
) -> Catalogue:
    """A catalogue from the committed tables alone: every priced type in every zone. `zone_ids` are the ids of the zones
    that have one.

    On-demand prices are the region's table's, or us-east-1's (A-203); spot prices are a model
    (`pricing.spot_model`), and `Catalogue.source` says both. Raises `InputError` KERF351 for a name that
    the table does not know.
    """
    known = tables()
    type_names = sorted(known.types if names is None else set(names))
    if unknown := [name for name in type_names if name not in known.types]:
        raise InputError(
            f"unknown instance types: {', '.join(unknown)}",
            where="names",
            hint=f"The {known.sources['types']} has {len(known.types)} types",
            code="KERF351",
        )
    on_demand, told = regional_prices(region)
    spot = {
        (name, zone): spot_model(price, name, zone, spot_discount)
        for name in type_names
        if (price := on_demand.get(name))
        for zone in zones
    }
    source = (
        f"{known.sources['types']}; {told}; "
        f"spot prices are a model ({spot_discount:.0%} below on-demand, varied by type and zone)"
    )
    prices = Prices(on_demand=on_demand, spot=spot, source=source)
    priced = [name for name in type_names if name in on_demand]
    market = Market(region=region, facts=known.types, prices=prices)
    return catalogue(
        market,
        settings or NodeSettings(),
        {zone: zone_ids.get(zone, "") for zone in zones},
        names=priced,
        capacity_types=capacity_types,
    )


def offline_market(region: str) -> Market:
    """What a region offers before EC2 has said anything."""
    return Market(region=region, facts=tables().types, prices=offline_prices(region))
