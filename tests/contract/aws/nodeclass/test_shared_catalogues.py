"""Which classes share a catalogue, and how often one is made."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.offerings import catalogue as make
from kerf.adapters.aws.mock.environment import node_class
from kerf.engine.record.observations import CatalogueSeen
from tests.support.servers.aws_world import CLOCK, AwsWorld, catalogue_of


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What each catalogue was made for."""
    sized: list[Any] = []

    def counted(market: Any, settings: Any, zones: Any, **others: Any) -> Any:
        sized.append(settings)
        return make(market, settings, zones, **others)

    monkeypatch.setattr("kerf.adapters.aws.nodeclass.class_catalogues.catalogue", counted)
    return sized


def test_classes_whose_nodes_are_sized_alike_share_one_catalogue(world: AwsWorld, made: list[Any]) -> None:
    first, other = node_class("a"), node_class("b")
    small = replace(node_class("c"), spec=replace(first.spec, kubelet={"maxPods": 20}))
    world.environment.node_classes[:] = [first, replace(other, spec=replace(other.spec, tags={"team": "b"})), small]
    seen = [o.payload for o in world.restarted().observe() if isinstance(o.payload, CatalogueSeen)]
    assert len(made) == 2
    assert [catalogue.node_class.rpartition("/")[2] for catalogue in seen] == ["a", "b", "c"]
    assert seen[0].digest == seen[1].digest != seen[2].digest


def test_no_catalogue_outlives_the_classes_that_use_it(world: AwsWorld) -> None:
    classes = [
        replace(node_class(f"n{pods}"), spec=replace(node_class().spec, kubelet={"maxPods": pods})) for pods in (20, 30)
    ]
    world.environment.node_classes[:] = classes
    cloud = world.restarted()
    cloud.observe()
    world.environment.node_classes[:] = classes[1:]
    cloud.observe()
    assert [made for _, made, _ in cloud._catalogues._made] == [cloud._catalogues.of(cloud._known["n30"].resolved)]


def test_a89_a202_a_catalogue_stays_until_a_price_changes_and_has_the_new_one_at_once(
    world: AwsWorld, made: list[Any]
) -> None:
    """However long ago it was made."""
    cloud = world.restarted()
    cloud.observe()
    world.advance(3_600_000)
    assert not [o for o in cloud.observe() if isinstance(o.payload, CatalogueSeen)]
    assert len(made) == 1

    def dearer(parsed: dict[str, Any], **_: Any) -> None:
        parsed["SpotPriceHistory"] = [
            {**entry, "SpotPrice": "0.0777"} if entry["InstanceType"] == "m5.large" else entry
            for entry in parsed["SpotPriceHistory"]
        ]

    events = world.environment.operator.ec2.meta.events
    events.register("after-call.ec2.DescribeSpotPriceHistory", dearer)
    try:
        world.advance(cloud._markets.next_due() - CLOCK.now)
        types = {kind.name: kind for kind in catalogue_of(cloud.observe()).types}
    finally:
        events.unregister("after-call.ec2.DescribeSpotPriceHistory", dearer)
    assert {offer.price for offer in types["m5.large"].offerings if offer.capacity_type == "spot"} == {0.0777}
    assert len(made) == 2
