"""Which NodeOverlay a node's price is from."""

from __future__ import annotations

import pytest

from kerf.engine.model.karpenter.nodeoverlays import Adjustment, NodeOverlay
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.labels import INSTANCE_TYPE
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.explain.overlaid_prices import OverlaidPrice, OverlaidPrices
from tests.support.world import World

XLARGE = (RequirementSpec(INSTANCE_TYPE, "In", ("m5.xlarge",)),)
LISTED = 0.192


def launched_under(*overlays: NodeOverlay, enabled: bool = True) -> OverlaidPrice | None:
    """What is told of the price of a node that was launched under these overlays."""
    world = World(node_overlays=enabled)
    world.prepare()
    world.see(*map(Observation, overlays))
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    (claim,) = world.runtime.state.facts.claims.values()
    return OverlaidPrices(world.runtime.state).of(claim)


@pytest.mark.parametrize(
    "fields", [{"price": 0.01}, {"adjustment": Adjustment(-90, percent=True)}], ids=["price", "adjustment"]
)
def test_the_overlay_that_prices_a_node_is_named_with_the_listed_price(fields: dict[str, object]) -> None:
    cheap = NodeOverlay("cheap", requirements=XLARGE, **fields)  # type: ignore[arg-type]
    assert launched_under(cheap) == OverlaidPrice("cheap", LISTED)


def test_the_heaviest_of_several_overlays_prices() -> None:
    light, heavy = NodeOverlay("a", requirements=XLARGE, price=0.02), NodeOverlay("b", price=0.01, weight=5)
    told = launched_under(light, heavy)
    assert told is not None
    assert told.overlay == "b"


def test_a_price_that_is_the_clouds_is_of_no_overlay() -> None:
    dear = NodeOverlay("dear", requirements=XLARGE, price=9.0)
    assert launched_under(dear) is None
    assert launched_under() is None
    assert launched_under(NodeOverlay("cheap", requirements=XLARGE, price=0.01), enabled=False) is None
