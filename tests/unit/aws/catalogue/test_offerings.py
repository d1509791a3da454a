"""Catalogues, prices and the committed tables (A-199…A-209)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import facts_of, tables
from kerf.adapters.aws.catalogue.instance_types import Interface, NodeSettings
from kerf.adapters.aws.catalogue.make_table import table
from kerf.adapters.aws.catalogue.offerings import Reservation, catalogue, offline_catalogue, offline_market
from kerf.adapters.aws.catalogue.pricing import (
    BARE_METAL_PRODUCTS,
    DEDICATED_PRODUCTS,
    SHARED_PRODUCTS,
    SPOT_SPREAD,
    Prices,
    pricing_region,
    product_filters,
    product_prices,
    spot_model,
    spot_prices,
)
from kerf.engine.errors import InputError

ZONES = {"us-west-2a": "usw2-az1", "us-west-2b": "usw2-az2"}


def test_the_tables_say_where_they_come_from() -> None:
    known = tables()
    assert len(known.types) >= 800
    assert known.sources["prices"].endswith("2026-07-20")
    examples = "m5.large m5.xlarge m6g.large t3.medium c5d.large a1.medium g4dn.xlarge inf2.xlarge m5.metal"
    assert {*examples.split(), "trn1.32xlarge"} <= known.types.keys()


def test_an_offline_catalogue_is_the_same_in_every_run_and_names_its_model() -> None:
    first = offline_catalogue(names=["m5.large", "c5.large"])
    assert first == offline_catalogue(names=["c5.large", "m5.large"])
    assert [kind.name for kind in first.types] == ["c5.large", "m5.large"]
    assert "2026-07-20" in first.source
    assert "model" in first.source
    prices = {(o.capacity_type, o.zone): o.price for o in first.types[1].offerings}
    assert prices["on-demand", "us-west-2a"] == 0.096
    assert len(prices) == 6
    assert all(price < 0.096 for (kind, _), price in prices.items() if kind == "spot")


def test_the_whole_offline_catalogue_has_only_priced_types() -> None:
    types = offline_catalogue(zones=("z1",)).types
    assert len(types) >= 800
    assert all(offering.price > 0 for kind in types for offering in kind.offerings)


def test_an_unknown_type_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"KERF351: unknown instance types: m5\.tiny"):
        offline_catalogue(names=["m5.large", "m5.tiny"])


@given(st.floats(0.001, 500), st.text(max_size=20), st.text(max_size=20), st.floats(0, 0.9))
def test_the_spot_model_stays_within_its_spread(price: float, name: str, zone: str, discount: float) -> None:
    spot = spot_model(price, name, zone, discount)
    assert spot == spot_model(price, name, zone, discount)
    assert abs(spot - price * (1 - discount)) <= SPOT_SPREAD * price * (1 - discount) + 1e-6


def test_a_432_a_zone_without_a_spot_price_is_unavailable() -> None:
    market = offline_market("us-west-2")
    market = replace(market, prices=replace(market.prices, spot={("m5.large", "us-west-2a"): 0.03}))
    (kind,) = catalogue(market, NodeSettings(), ZONES, names=["m5.large"], capacity_types=["spot"]).types
    assert [(o.zone, o.available) for o in kind.offerings] == [("us-west-2a", True), ("us-west-2b", False)]
    assert kind.offerings[0].zone_id == "usw2-az1"


def test_a_433_before_the_first_refresh_spot_costs_what_on_demand_does() -> None:
    (kind,) = catalogue(offline_market("us-west-2"), NodeSettings(), ZONES, names=["m5.large"]).types
    assert {offering.price for offering in kind.offerings} == {0.096}


def test_a_200_an_incompatible_type_has_only_unavailable_offerings() -> None:
    (kind,) = catalogue(offline_market("us-west-2"), NodeSettings(), ZONES, names=["a1.large"]).types
    assert kind.offerings
    assert not any(offering.available for offering in kind.offerings)


def test_a_146_a_type_is_offered_only_where_ec2_has_it_and_the_class_a_subnet() -> None:
    market = replace(offline_market("us-west-2"), zones_of={"m5.large": frozenset({"us-west-2b", "us-west-2d"})})
    (kind,) = catalogue(market, NodeSettings(), ZONES, names=["m5.large", "c5.large"]).types
    assert {offering.zone for offering in kind.offerings} == {"us-west-2b"}


def test_a_315_interfaces_for_efa_are_there_on_request_unless_the_class_has_its_own() -> None:
    market = offline_market("us-west-2")
    made = catalogue(market, NodeSettings(), ZONES, names=["c5n.18xlarge", "m5.large"])
    assert made.on_request == ("vpc.amazonaws.com/efa",)
    own = NodeSettings(interfaces=(Interface(0, 0), Interface(1, 1, efa_only=True)))
    assert catalogue(market, own, ZONES, names=["c5n.18xlarge"]).on_request == ()
    assert catalogue(market, NodeSettings(), ZONES, names=["m5.large"]).on_request == ()


def test_a_209_a_479_each_reservation_is_an_offering_of_its_own() -> None:
    held = (
        Reservation("cr-2", "m5.large", "us-west-2a", 3),
        Reservation("cr-1", "m5.large", "us-west-2b", 0),
        Reservation("cr-3", "m5.large", "us-west-2d", 5),
        Reservation("cr-4", "c5.large", "us-west-2a", 5),
        Reservation("cr-5", "m5.large", "us-west-2a", 7),
    )
    (kind,) = catalogue(
        offline_market("us-west-2"),
        NodeSettings(),
        ZONES,
        names=["m5.large"],
        reservations=held,
        capacity_types=(),
    ).types
    assert [(o.reservation_id, o.available, o.price) for o in kind.offerings] == [
        ("cr-1", False, 0.096 / 10_000_000),
        ("cr-2", True, 0.096 / 10_000_000),
        ("cr-5", True, 0.096 / 10_000_000),
    ]
    assert kind.requirements["karpenter.k8s.aws/capacity-reservation-id"] == ("cr-1", "cr-2", "cr-5")


@pytest.mark.parametrize(
    ("region", "home"),
    [
        ("ap-southeast-2", "ap-south-1"),
        ("eu-west-1", "eu-central-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("us-west-2", "us-east-1"),
        ("sa-east-1", "us-east-1"),
        ("us-gov-west-1", ""),
    ],
)
def test_a_205_pricing_region(region: str, home: str) -> None:
    assert pricing_region(region) == home


@pytest.mark.parametrize(
    ("region", "price", "source"),
    [
        ("us-gov-west-1", 0.121, "us-gov-west-1 on-demand price table of 2026-06-15"),
        ("us-gov-east-1", 0.121, "us-gov-east-1 on-demand price table of 2026-06-15"),
        ("cn-north-1", 1.013, "cn-north-1 on-demand price table of 2024-11-06"),
        ("eu-west-1", 0.096, "us-east-1 on-demand price table of 2026-07-20"),
    ],
)
def test_a_203_a_region_of_another_partition_starts_with_prices_of_its_own(
    region: str, price: float, source: str
) -> None:
    prices = offline_market(region).prices
    assert (prices.of("m5.large", f"{region}a", "on-demand"), prices.source) == (price, source)
    made = offline_catalogue(region=region, zones=(f"{region}a",), names=["m5.large"], capacity_types=("on-demand",))
    assert [offering.price for offering in made.types[0].offerings] == [price]
    assert source in made.source


def test_a_204_what_the_queries_ask_for() -> None:
    shared = {f["Field"]: f["Value"] for f in product_filters("eu-west-1", SHARED_PRODUCTS)}
    metal = {f["Field"]: f["Value"] for f in product_filters("eu-west-1", BARE_METAL_PRODUCTS)}
    dedicated = {f["Field"]: f["Value"] for f in product_filters("eu-west-1", DEDICATED_PRODUCTS)}
    assert (shared["tenancy"], shared["productFamily"]) == ("Shared", "Compute Instance")
    assert (metal["tenancy"], metal["productFamily"]) == ("Dedicated", "Compute Instance (bare metal)")
    assert (dedicated["tenancy"], dedicated["productFamily"]) == ("Dedicated", "Compute Instance")
    assert shared["regionCode"] == "eu-west-1"


def product(name: str, price: str) -> str:
    terms = {"OnDemand": {"t": {"priceDimensions": {"d": {"pricePerUnit": {"USD": price}}}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


def test_a_204_prices_that_are_zero_or_do_not_parse_are_left_out() -> None:
    documents = [
        product("m5.large", "0.107"),
        product("c5.large", "0"),
        product("x", "free"),
        product("x", "inf"),
        product("x", "1").replace('"1"', "9" * 400),
        "[" * 100_000,
        "{}",
        "no json",
        "[]",
    ]
    assert product_prices(documents) == {"m5.large": 0.107}


def test_a_206_the_newest_record_counts() -> None:
    entries: list[dict[str, Any]] = [
        {"InstanceType": "m5.large", "AvailabilityZone": "a", "SpotPrice": "0.03", "Timestamp": "2026-01-02"},
        {"InstanceType": "m5.large", "AvailabilityZone": "a", "SpotPrice": "0.02", "Timestamp": "2026-01-01"},
        {"InstanceType": "m5.large", "AvailabilityZone": "b", "SpotPrice": "?"},
        {"InstanceType": "m5.large", "AvailabilityZone": "b", "SpotPrice": "inf"},
        {"InstanceType": "m5.large", "AvailabilityZone": "b", "SpotPrice": None},
    ]
    assert spot_prices(entries) == {("m5.large", "a"): 0.03}


def test_answers_are_merged_and_never_take_a_price_away() -> None:
    """Answers are merged and never take a price away (A-204, A-206)."""
    prices = Prices(on_demand={"a": 1.0, "b": 2.0}, spot=None, source="")
    newer = prices.merged(on_demand={"a": 1.5}, spot={("a", "z"): 0.5})
    assert newer.on_demand == {"a": 1.5, "b": 2.0}
    assert newer.merged(on_demand=None, spot={}).spot == {("a", "z"): 0.5}


def test_a_137_other_architectures_and_paravirtual_types_are_left_out() -> None:
    entry = {
        "InstanceType": "x.large",
        "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"]},
        "SupportedVirtualizationTypes": ["hvm"],
        "VCpuInfo": {"DefaultVCpus": 1},
        "MemoryInfo": {"SizeInMiB": 1024},
    }
    known = facts_of(entry)
    assert known is not None
    assert known.arch == "amd64"
    assert facts_of(entry | {"SupportedVirtualizationTypes": ["paravirtual"]}) is None
    assert facts_of(entry | {"ProcessorInfo": {"SupportedArchitectures": ["arm64_mac"]}}) is None
    assert json.loads(table([entry], "today"))["values"][0]["name"] == "x.large"
