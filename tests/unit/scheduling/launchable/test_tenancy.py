"""Dedicated hardware: who gets it, at which price, and with which label (A-165, A-216, A-230, A-316)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.instance_types import NodeSettings
from kerf.adapters.aws.catalogue.offerings import catalogue, offline_market
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.labels import DEDICATED, DEFAULT_TENANCY, ON_DEMAND, TENANCY
from kerf.engine.record.decisions import LaunchInstance
from tests.support.world import NODE_CLASS, Mi, World

ZONES = {"us-west-2a": "usw2-az1", "us-west-2b": "usw2-az2"}


def sold(dedicated: dict[str, float] | None = None) -> Catalogue:
    """What EC2 sells of two types: c5.large costs 0.085, m5.large 0.096 on shared hardware."""
    market = offline_market("us-west-2")
    market = replace(market, prices=replace(market.prices, dedicated=dedicated or {}))
    return catalogue(market, NodeSettings(), ZONES, names=["c5.large", "m5.large"], capacity_types=[ON_DEMAND])


def asked(requirements: tuple[RequirementSpec, ...], offered: Catalogue, **selector: str) -> World:
    """A pod waits for a node of a NodePool with these requirements."""
    world = World()
    world.prepare(NodePool("default", NODE_CLASS, requirements=requirements), offered)
    world.pending("a", memory=100 * Mi, node_selector=selector)
    world.after(1_000)
    return world


def only(*values: str) -> tuple[RequirementSpec, ...]:
    return (RequirementSpec(TENANCY, "In", values),)


@pytest.mark.parametrize(
    ("requirements", "tenancy", "types", "price"),
    [
        ((), DEFAULT_TENANCY, {"c5.large", "m5.large"}, 0.085),
        (only(DEFAULT_TENANCY), DEFAULT_TENANCY, {"c5.large", "m5.large"}, 0.085),
        (only(DEFAULT_TENANCY, DEDICATED), DEFAULT_TENANCY, {"c5.large", "m5.large"}, 0.085),
        (only(DEDICATED), DEDICATED, {"m5.large"}, 0.105),
    ],
)
def test_a_230_shared_hardware_if_it_is_allowed_else_dedicated_at_its_own_price(
    requirements: tuple[RequirementSpec, ...], tenancy: str, types: set[str], price: float
) -> None:
    ((_, order),) = asked(requirements, sold({"m5.large": 0.105})).launches()
    assert isinstance(order, LaunchInstance)
    assert (order.tenancy, order.offers[0].price) == (tenancy, price)
    assert {offer.instance_type for offer in order.offers} == types


def test_a_165_a_pod_gets_dedicated_hardware_by_its_selector_alone() -> None:
    world = asked((), sold({"m5.large": 0.105}), **{TENANCY: DEDICATED})
    ((ref, order),) = world.launches()
    assert (order.tenancy, order.offers[0].price) == (DEDICATED, 0.105)
    world.answer_launch(ref, order)
    (claim,) = world.runtime.state.facts.claims.values()
    assert (claim.labels[TENANCY], claim.price) == (DEDICATED, 0.105)
    assert claim.drift is None


def test_a_216_shared_hardware_without_capacity_is_not_replaced_by_dedicated() -> None:
    offered = sold({"m5.large": 0.105})
    types = tuple(
        replace(kind, offerings=tuple(replace(o, available=o.tenancy == DEDICATED) for o in kind.offerings))
        for kind in offered.types
    )
    assert asked((), replace(offered, types=types)).launches() == []


@pytest.mark.parametrize(
    ("requirements", "selector"), [(only(DEDICATED), {}), ((), {TENANCY: DEDICATED})], ids=["nodepool", "pod"]
)
def test_a_216_without_a_price_there_is_no_offering(
    requirements: tuple[RequirementSpec, ...], selector: dict[str, str]
) -> None:
    world = asked(requirements, sold(), **selector)
    assert world.launches() == []


def test_a_316_the_label_says_what_was_launched() -> None:
    """A NodePool that asks for shared hardware got nodes without the label: they drifted for ever."""
    for requirements, offered in (((), sold()), (only(DEFAULT_TENANCY), sold({"m5.large": 0.105}))):
        world = asked(requirements, offered)
        ((ref, order),) = world.launches()
        world.answer_launch(ref, order)
        (claim,) = world.runtime.state.facts.claims.values()
        assert (claim.labels[TENANCY], claim.drift) == (DEFAULT_TENANCY, None)
