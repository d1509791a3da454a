"""The whole controller on EC2 with a price list that has holes: what is priced is launched, nothing pauses or loops.

The NodePool allows c5.large, m5.large, r5.large and m5.xlarge, on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import pytest

from kerf.adapters.aws.catalogue.facts import regional_prices
from kerf.adapters.aws.catalogue.market import LiveMarket
from kerf.adapters.aws.mock.moto_shim import MotoShim
from kerf.engine.record import claim_events as ev
from kerf.engine.record.observations import InputRefused
from tests.support.aws.life import MINUTE, Account, AwsLife

pytestmark = pytest.mark.slow

PODS = 5
CHEAPEST = "c5.large"
ALLOWED = (CHEAPEST, "m5.large", "r5.large", "m5.xlarge")


@pytest.fixture
def shim(the_account: Account) -> Iterator[MotoShim]:
    """The account, whose price list may be changed."""
    shim = the_account.operator.shim
    usual = shim.product
    yield shim
    shim.product = usual


@pytest.fixture
def unknown() -> Iterator[set[str]]:
    """Types that are newer than kerf's own table of prices."""
    newer: set[str] = set()

    def known(region: str) -> tuple[Mapping[str, float], str]:
        prices, source = regional_prices(region)
        return {name: price for name, price in prices.items() if name not in newer}, source

    with mock.patch("kerf.adapters.aws.catalogue.pricing.regional_prices", known):
        yield newer


def types_of(life: AwsLife) -> set[str]:
    return {launched.instance_type for launched in life.of(ev.Launched)}


def served(life: AwsLife) -> bool:
    """Whether all pods run, on instances that claims have, and nothing was launched twice."""
    running = [pod for pod in life.state.facts.pods.values() if pod.node and pod.namespace == "other"]
    asked = len(life.of(ev.Requested))
    return len(running) == PODS and life.instances() == life.held() and len(life.instances()) == asked


def test_a_204_types_that_the_list_lacks_keep_the_price_of_the_table(the_account: Account, shim: MotoShim) -> None:
    usual = shim.product
    shim.product = lambda name, price: None if name in ALLOWED else usual(name, price)
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(10 * MINUTE)
    assert served(life)
    assert life.of(InputRefused) == []
    life.end()


def test_a_200_types_without_any_price_are_left_and_the_others_launched(
    the_account: Account, shim: MotoShim, unknown: set[str]
) -> None:
    unknown |= {*ALLOWED} - {"r5.large"}
    usual = shim.product
    shim.product = lambda name, price: None if name in unknown else usual(name, price)
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(10 * MINUTE)
    assert served(life)
    assert types_of(life) == {"r5.large"}
    assert life.of(InputRefused) == []
    life.end()


def test_pods_wait_for_the_price_of_the_only_types_they_may_have(
    the_account: Account, shim: MotoShim, unknown: set[str]
) -> None:
    """Nothing asks again and again meanwhile; the next price list, half a day later, has them."""
    unknown |= {*ALLOWED}
    usual = shim.product
    shim.product = lambda name, price: None if name in unknown else usual(name, price)
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(10 * MINUTE)
    assert (life.instances(), life.of(ev.Requested)) == ([], [])
    entries = len(life.entries)
    life.run(20 * MINUTE)
    assert len(life.entries) - entries < 40, "a pending pod costs no pass a minute"
    shim.product = usual
    life.run(12 * 60 * MINUTE)
    assert served(life)
    life.end()


@pytest.mark.parametrize(
    "malformed",
    [
        "", "null", "[]", "{}", '{"product": 7}', "[" * 100_000, "no json",
        '{"product": {"attributes": {"instanceType": "%s"}}, "terms": {"OnDemand": []}}',
        *(
            '{"product": {"attributes": {"instanceType": "%s"}}, "terms": {"OnDemand": {"1": {"priceDimensions": '
            '{"1": {"pricePerUnit": {"USD": ' + price + "}}}}}}}"
            for price in ('"free"', '"-1"', '"nan"', '"1e999"', '""', "null", "[]", "9" * 400)
        ),
    ],
    ids=lambda text: text[-24:] or "empty",
)  # fmt: skip
def test_a_204_malformed_rows_take_no_type_out_of_service(the_account: Account, shim: MotoShim, malformed: str) -> None:
    usual = shim.product

    def product(name: str, price: float) -> str | None:
        return malformed.replace("%s", name) if name in ALLOWED else usual(name, price)

    shim.product = product
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(3 * MINUTE)
    assert served(life)
    assert life.of(InputRefused) == []
    life.end()


def test_a_203_a_region_without_prices_goes_by_the_table_until_it_has_some(
    the_account: Account, shim: MotoShim
) -> None:
    usual, asked = shim.product, 0

    def nothing(name: str, price: float) -> None:
        nonlocal asked
        asked += name == CHEAPEST

    shim.product = nothing
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(10 * MINUTE)
    assert served(life)
    (told,) = life.of(InputRefused)
    assert (told.object, "EmptyAnswer" in told.message) == ("on-demand prices", True)
    assert asked <= 12, "once a minute"
    shim.product = lambda name, price: usual(name, 2 * price)
    life.run(2 * MINUTE)
    assert price_of(life, CHEAPEST) == 2 * regional_prices("us-west-2")[0][CHEAPEST]
    assert served(life), "a price that doubles for all types moves nothing"
    life.end()


def test_a_204_a_region_without_bare_metal_has_prices_of_the_rest(the_account: Account, shim: MotoShim) -> None:
    usual = shim.product
    shim.product = lambda name, price: None if ".metal" in name else usual(name, 2 * price)
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(3 * MINUTE)
    assert served(life)
    assert life.of(InputRefused) == []
    assert price_of(life, CHEAPEST) == 2 * regional_prices("us-west-2")[0][CHEAPEST]
    life.end()


def test_a_node_whose_type_lost_its_price_stays_and_is_not_replaced(
    the_account: Account, shim: MotoShim, unknown: set[str]
) -> None:
    """A new process knows neither the price of the table nor that of the list."""
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(3 * MINUTE)
    (kind,) = types_of(life)
    before, usual = life.instances(), shim.product
    unknown.add(kind)
    shim.product = lambda name, price: None if name in unknown else usual(name, price)
    life.world.cloud.reconnect()
    life.run(10 * MINUTE)
    assert price_of(life, kind) is None
    assert life.instances() == before
    assert served(life)
    assert life.of(InputRefused) == []
    life.end()


def price_of(life: AwsLife, kind: str) -> float | None:
    """The on-demand price that kerf goes by; None where it has none."""
    market: Any = life.world.cloud._cloud._markets
    assert isinstance(market, LiveMarket)
    return market.market.prices.of(kind, "us-west-2a", "on-demand")
