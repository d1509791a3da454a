"""Prices: the Pricing API, spot price history, and what stands in for them offline (A-203…A-207). Pure.

Times and money as everywhere: USD per hour. `spot_model` is a model, not a price: it is named as such
wherever a catalogue made with it says its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from math import inf
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.aws.catalogue.facts import regional_prices

SPOT_DISCOUNT = 0.65
SPOT_SPREAD = 0.15


class Prices(Struct, frozen=True):
    """On-demand by type; spot by (type, zone), or None until the first answer: then the on-demand price
    stands in. `dedicated`: on demand on dedicated hardware; no table has these, so there are none before the first
    answer."""

    on_demand: Mapping[str, float]
    spot: Mapping[tuple[str, str], float] | None
    source: str
    dedicated: Mapping[str, float] = {}

    def of(self, name: str, zone: str, capacity_type: str) -> float | None:
        """None when no price is known: the offering is then not available (A-200, A-206)."""
        if capacity_type == "spot" and self.spot is not None:
            return self.spot.get((name, zone))
        return self.on_demand.get(name)

    def merged(
        self,
        *,
        on_demand: Mapping[str, float] | None,
        spot: Mapping[tuple[str, str], float] | None,
        dedicated: Mapping[str, float] | None = None,
    ) -> Prices:
        """New answers over the old ones: a type that an answer leaves out keeps its price (A-204,
        A-206)."""
        newer = self
        if on_demand:
            newer = msgspec.structs.replace(newer, on_demand={**self.on_demand, **on_demand})
        if spot:
            newer = msgspec.structs.replace(newer, spot={**(self.spot or {}), **spot})
        if dedicated:
            newer = msgspec.structs.replace(newer, dedicated={**self.dedicated, **dedicated})
        return newer


def offline_prices(region: str) -> Prices:
    """The committed on-demand table of a region, or that of us-east-1, which most regions start with (A-203)."""
    prices, source = regional_prices(region)
    return Prices(on_demand=prices, spot=None, source=source)


def spot_model(on_demand: float, name: str, zone: str, discount: float = SPOT_DISCOUNT) -> float:
    """A stand-in for a spot price: the on-demand price less `discount`, moved by up to 15% either way by a
    hash of type and zone, so that zones differ and every run agrees. Real spot prices follow supply and
    demand."""
    digest = blake2b(f"{name}/{zone}".encode(), digest_size=4).digest()
    position = int.from_bytes(digest, "big") / 0xFFFFFFFF  # 0…1
    return round(on_demand * (1 - discount) * (1 - SPOT_SPREAD + 2 * SPOT_SPREAD * position), 6)


def pricing_region(region: str) -> str:
    """The region whose Pricing API has a region's prices (A-205); "" where there is none."""
    if region.startswith("us-gov"):
        return ""
    for prefix, home in (("ap-", "ap-south-1"), ("eu-", "eu-central-1"), ("cn-", "cn-northwest-1")):
        if region.startswith(prefix):
            return home
    return "us-east-1"


SHARED_PRODUCTS = ("Shared", "Compute Instance")
BARE_METAL_PRODUCTS = ("Dedicated", "Compute Instance (bare metal)")
DEDICATED_PRODUCTS = ("Dedicated", "Compute Instance")
"""What is asked for on-demand prices: tenancy and product family (A-204, A-216)."""


def product_filters(region: str, products: tuple[str, str]) -> list[dict[str, str]]:
    """The filters of a query for on-demand prices (A-204)."""
    tenancy, family = products
    values = {
        "regionCode": region,
        "serviceCode": "AmazonEC2",
        "preInstalledSw": "NA",
        "operatingSystem": "Linux",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "tenancy": tenancy,
        "productFamily": family,
    }
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in values.items()]


def product_prices(documents: Iterable[str], currency: str = "USD") -> dict[str, float]:
    """On-demand prices in the documents of GetProducts; what is zero or does not parse is left out
    (A-204)."""
    prices: dict[str, float] = {}
    for document in documents:
        try:
            product = json.loads(document)
            name = str(product["product"]["attributes"]["instanceType"])
            for term in product["terms"]["OnDemand"].values():
                for dimension in term["priceDimensions"].values():
                    price = float(dimension["pricePerUnit"].get(currency, 0))
                    if 0 < price < inf:
                        prices[name] = price
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            continue
    return prices


def spot_prices(entries: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """The newest price per (type, zone) in the entries of DescribeSpotPriceHistory (A-206)."""
    newest: dict[tuple[str, str], tuple[str, float]] = {}
    for entry in entries:
        try:
            key = (str(entry["InstanceType"]), str(entry["AvailabilityZone"]))
            when, price = str(entry.get("Timestamp", "")), float(entry["SpotPrice"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 < price < inf and (key not in newest or newest[key][0] < when):
            newest[key] = (when, price)
    return {key: price for key, (_, price) in newest.items()}
