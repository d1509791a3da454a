"""What a region offers, asked of EC2 and the Pricing API: types, their zones and prices (A-137, A-138, A-203…A-207)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import InstanceTypeFacts, facts_of
from kerf.adapters.aws.catalogue.offerings import offline_market
from kerf.adapters.aws.catalogue.pricing import (
    BARE_METAL_PRODUCTS,
    DEDICATED_PRODUCTS,
    SHARED_PRODUCTS,
    pricing_region,
    product_filters,
    product_prices,
    spot_prices,
)
from kerf.adapters.aws.session import AwsError, Clients, filters, pages
from kerf.adapters.aws.told_once import ToldOnce
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.record.observations import InputRefused

REFRESH = 12 * 3_600_000
RETRY = 60_000
"""Milliseconds to the next try, after a success and after a failure (A-207)."""
MAX_TOLD = 5
"""How many types that cannot be read are named."""
_PRODUCTS = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]


class LiveMarket:
    """The market of one region. Each part is renewed by itself, and keeps its old content when EC2 refuses."""

    def __init__(self, clients: Clients, clock: Callable[[], int], *, isolated: bool = False) -> None:
        self._clients = clients
        self._clock = clock
        self._isolated = isolated
        self._due = {"types": 0, "on-demand prices": 0, "spot prices": 0}
        self.market = offline_market(clients.region)
        self.known = False
        self._told = {part: ToldOnce() for part in self._due}
        self._unread: list[AwsError] = []  # what of the last answer about types could not be read

    def refresh(self) -> list[InputRefused]:
        """Renew the parts that are due. Returns what could not be renewed, once for as long as AWS refuses it alike. It
        is tried again after a minute."""
        news = []
        for part, renew in (
            ("types", self._types),
            ("on-demand prices", self._on_demand),
            ("spot prices", self._spot),
        ):
            if self._due[part] > self._clock():
                continue
            refused = list[KerfError]()
            try:
                renew()
            except Exception as error:  # classes are resolved with what is known: an answer nobody expected is none
                refused.append(fault_of(error, part))
            self._due[part] = self._clock() + (RETRY if refused else REFRESH)
            told = [*refused, *(self._unread if part == "types" else ())]
            news += [InputRefused(e.code, "prices", part, message=str(e)) for e in self._told[part].news(told)]
        return news

    def next_due(self) -> int:
        """When a part is to be renewed (ms since the epoch)."""
        return min(self._due.values())

    def _types(self) -> None:
        """Ask EC2 for its instance types, and in which zones they are offered (A-137). What cannot be read of a type
        leaves out that type alone."""
        conditions = filters(supported_virtualization_type=["hvm"])
        conditions += [{"Name": "processor-info.supported-architecture", "Values": ["x86_64", "arm64"]}]
        ec2 = self._clients.ec2
        entries = pages(ec2.describe_instance_types, "InstanceTypes", Filters=conditions, MaxResults=100)
        facts, unread = _read(entries)
        if unread and not facts:
            raise unread[0]
        zones: dict[str, set[str]] = {}
        for offered in pages(
            ec2.describe_instance_type_offerings,
            "InstanceTypeOfferings",
            LocationType="availability-zone",
            MaxResults=1000,
        ):
            if "InstanceType" in offered and "Location" in offered:
                zones.setdefault(offered["InstanceType"], set()).add(offered["Location"])
        self.market = replace(
            self.market, facts=facts, zones_of={name: frozenset(where) for name, where in zones.items()}
        )
        self.known, self._unread = True, unread

    def _on_demand(self) -> None:
        """Ask the Pricing API for on-demand prices (A-204), and for those of dedicated hardware. Nothing changes unless
        all queries are answered. A region may have neither bare metal nor dedicated hardware."""
        region = self._clients.region
        if self._isolated or not pricing_region(region):
            return
        shared = self._products(SHARED_PRODUCTS)
        if not shared:
            raise AwsError("get_products", "EmptyAnswer", "the Pricing API named no price")
        prices = shared | self._products(BARE_METAL_PRODUCTS)
        dedicated = self._products(DEDICATED_PRODUCTS)
        self._price(f"on-demand prices of {region} {self._today()}", on_demand=prices, dedicated=dedicated)

    def _products(self, products: tuple[str, str]) -> dict[str, float]:
        """The on-demand prices of one query. Raises `AwsError`."""
        region = self._clients.region
        documents = pages(
            self._clients.pricing.get_products,
            "PriceList",
            ServiceCode="AmazonEC2",
            Filters=product_filters(region, products),
            MaxResults=100,
        )
        return product_prices(documents, "CNY" if region.startswith("cn-") else "USD")

    def _spot(self) -> None:
        """Ask EC2 for the spot prices of now (A-206)."""
        entries = pages(
            self._clients.ec2.describe_spot_price_history,
            "SpotPriceHistory",
            StartTime=datetime.fromtimestamp(self._clock() / 1000, UTC),
            ProductDescriptions=_PRODUCTS,
            MaxResults=1000,
        )
        prices = spot_prices(entries)
        if not prices:
            raise AwsError("describe_spot_price_history", "EmptyAnswer", "the spot price history is empty")
        self._price(f"spot prices of {self._today()}", spot=prices)

    def _price(
        self,
        source: str,
        on_demand: dict[str, float] | None = None,
        spot: dict[tuple[str, str], float] | None = None,
        dedicated: dict[str, float] | None = None,
    ) -> None:
        prices = self.market.prices.merged(on_demand=on_demand, spot=spot, dedicated=dedicated)
        if prices == self.market.prices:
            return  # the same prices under a newer date would be a new catalogue for nothing
        parts = [part for part in prices.source.split("; ") if ("spot" in part) != (spot is not None)]
        self.market = replace(self.market, prices=replace(prices, source="; ".join(sorted([*parts, source]))))

    def _today(self) -> str:
        return datetime.fromtimestamp(self._clock() / 1000, UTC).date().isoformat()


def _read(entries: Iterable[Mapping[str, Any]]) -> tuple[dict[str, InstanceTypeFacts], list[AwsError]]:
    """The types of an answer, and one error that names those that cannot be read: a field is missing."""
    facts: dict[str, InstanceTypeFacts] = {}
    unread: list[str] = []
    for entry in entries:
        try:
            known = facts_of(entry)
        except KeyError as missing:
            unread.append(f"{entry.get('InstanceType', 'a type without a name')} has no {missing.args[0]}")
        else:
            facts |= {known.name: known} if known is not None else {}
    told = ", ".join(sorted(unread)[:MAX_TOLD])
    return facts, [AwsError("describe_instance_types", "MalformedEntry", told)] if unread else []
