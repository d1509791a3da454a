"""When the types, zones and prices of a region are asked for (A-203, A-206, A-207, A-369, A-370)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.adapters.aws.catalogue.market import REFRESH, RETRY, LiveMarket

TYPES = {"describe_instance_types", "describe_instance_type_offerings"}
SPOT, ON_DEMAND = "describe_spot_price_history", "get_products"
HOUR = 3_600_000


class Region:
    """A region in which spot costs a cent. It counts what it is asked for, and refuses what it is told to."""

    def __init__(self, name: str) -> None:
        self.region, self.now = name, 0
        self.ec2 = self.pricing = self
        self.asked: list[str] = []
        self.refuses = ""
        spot = {"InstanceType": "m5.large", "AvailabilityZone": f"{name}a", "SpotPrice": "0.01"}
        dimensions = {"1": {"pricePerUnit": {"USD": "0.5", "CNY": "3.5"}}}
        terms = {"OnDemand": {"1": {"priceDimensions": dimensions}}}
        product = json.dumps({"product": {"attributes": {"instanceType": "m5.large"}}, "terms": terms})
        self.answers: dict[str, dict[str, Any]] = {
            SPOT: {"SpotPriceHistory": [spot]},
            ON_DEMAND: {"PriceList": [product]},
        }

    def __getattr__(self, name: str) -> Any:
        def operation(**_: Any) -> dict[str, Any]:
            self.asked.append(name)
            if name == self.refuses:
                error = {"Code": "RequestLimitExceeded", "Message": "no"}
                raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 503}}, name)
            return self.answers.get(name, {})

        operation.__name__ = name
        return operation

    def after(self, milliseconds: int, market: LiveMarket) -> set[str]:
        """What is asked for then."""
        self.now += milliseconds
        del self.asked[:]
        market.refresh()
        return set(self.asked)


def market_of(region: Region) -> LiveMarket:
    clients: Any = region
    return LiveMarket(clients, lambda: region.now)


def test_a_369_a_370_prices_and_types_are_asked_for_every_twelve_hours() -> None:
    region = Region("us-west-2")
    market = market_of(region)
    assert region.after(0, market) == {*TYPES, SPOT, ON_DEMAND}
    assert (market.next_due(), REFRESH) == (12 * HOUR, 12 * HOUR)
    assert region.after(12 * HOUR - 1, market) == set()
    assert region.after(1, market) == {*TYPES, SPOT, ON_DEMAND}


@pytest.mark.parametrize(
    ("refused", "again"),
    [
        (SPOT, {SPOT}),
        (ON_DEMAND, {ON_DEMAND}),
        ("describe_instance_types", TYPES),
        ("describe_instance_type_offerings", TYPES),
    ],
)
def test_a_369_a_370_what_was_refused_is_asked_for_again_in_a_minute_and_nothing_else_is(
    refused: str, again: set[str]
) -> None:
    region = Region("us-west-2")
    region.refuses = refused
    market = market_of(region)
    region.after(0, market)
    region.refuses = ""
    assert region.after(RETRY - 1, market) == set()
    assert region.after(1, market) == again
    assert region.after(RETRY, market) == set()


@pytest.mark.parametrize(
    ("operation", "key"),
    [("describe_instance_types", "InstanceTypes"), ("describe_instance_type_offerings", "InstanceTypeOfferings")],
)
def test_an_answer_that_nobody_can_read_is_asked_for_again_in_a_minute(operation: str, key: str) -> None:
    """It kept all NodeClasses from being resolved."""
    region = Region("us-west-2")
    region.answers[operation] = {key: [None]}
    market = market_of(region)
    assert [(refused.code, refused.object) for refused in market.refresh()] == [("KERF605", "types")]
    assert region.after(RETRY - 1, market) == set()
    assert operation in region.after(1, market)


@pytest.mark.parametrize(
    ("region", "asked", "on_demand"),
    [("us-gov-west-1", False, 0.121), ("us-west-2", True, 0.5), ("cn-north-1", True, 3.5)],
)
def test_a_434_in_govcloud_on_demand_costs_what_the_table_says_and_spot_what_ec2_does(
    region: str, asked: bool, on_demand: float
) -> None:
    of = Region(region)
    market = market_of(of)
    assert (ON_DEMAND in of.after(0, market)) == asked
    prices = market.market.prices
    assert prices.of("m5.large", f"{region}a", "on-demand") == on_demand
    assert prices.of("m5.large", f"{region}a", "spot") == 0.01
