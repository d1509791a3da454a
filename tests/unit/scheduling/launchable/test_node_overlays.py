"""S-183 to S-189: overlays, heaviest first, and what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.karpenter.nodeoverlays import Adjustment, NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.kubernetes.devices import Device, ResourceSlice
from kerf.engine.scheduling.launchable.node_overlays import OverlayCondition, overlaid_catalogues, overlay_conditions
from tests.support.scenarios.problems import instance_type, pool, spec

FUSE = "smarter-devices/fuse"
CATALOGUE = Catalogue((instance_type("a", 2, zones=("z1", "z2")), instance_type("b", 4, zones=("z1",))))


class OverlayEvaluation(NamedTuple):
    """`catalogues`: by NodePool, only those that an overlay changes. `conditions`: by overlay."""

    catalogues: dict[str, Catalogue]
    conditions: dict[str, OverlayCondition]


def evaluate_overlays(
    overlays: Sequence[NodeOverlay], pools: Sequence[tuple[NodePool, Catalogue]]
) -> OverlayEvaluation:
    changed = overlaid_catalogues(overlays, [(each, content(catalogue)[0], catalogue) for each, catalogue in pools])
    catalogues = {name: catalogue for name, (digest, catalogue) in changed.items() if digest == content(catalogue)[0]}
    assert catalogues.keys() == changed.keys()
    return OverlayEvaluation(catalogues, overlay_conditions(overlays, pools))


def overlay(name: str, *requirements: RequirementSpec, **fields: Any) -> NodeOverlay:
    return NodeOverlay(name, requirements=requirements, **fields)


def apply(*overlays: NodeOverlay) -> OverlayEvaluation:
    return evaluate_overlays(overlays, [(pool(), CATALOGUE)])


def prices(found: OverlayEvaluation, name: str, node_pool: str = "default") -> dict[tuple[str, str], float]:
    (given,) = (offered_type for offered_type in found.catalogues[node_pool].types if offered_type.name == name)
    return {(offering.capacity_type, offering.zone): round(offering.price, 6) for offering in given.offerings}


OD1, OD2, SPOT1, SPOT2 = ("on-demand", "z1"), ("on-demand", "z2"), ("spot", "z1"), ("spot", "z2")
ONLY_A = spec(lbl.INSTANCE_TYPE, "In", "a")
ON_DEMAND = spec(lbl.CAPACITY_TYPE, "In", "on-demand")
RED = spec("team", "In", "red")
ZONE_9 = spec(lbl.ZONE, "In", "z9")


def test_s184_s185_the_offerings_that_match_get_the_price() -> None:
    found = apply(overlay("o", ONLY_A, ON_DEMAND, price=0.05))
    assert prices(found, "a") == {OD1: 0.05, OD2: 0.05, SPOT1: 0.06, SPOT2: 0.06}
    assert prices(found, "b") == {OD1: 0.4, SPOT1: 0.12}
    assert found.conditions == {"o": OverlayCondition.SUCCEEDED}


def test_s185_adjustments_are_of_each_price_and_stop_at_nothing() -> None:
    found = apply(overlay("o", ONLY_A, adjustment=Adjustment(-50, percent=True)))
    assert prices(found, "a") == {OD1: 0.1, OD2: 0.1, SPOT1: 0.03, SPOT2: 0.03}
    assert set(prices(apply(overlay("o", adjustment=Adjustment(-9))), "b").values()) == {0.0}


def test_s185_the_heavier_one_wins_and_the_lighter_fills_the_gaps() -> None:
    light = overlay("light", ONLY_A, price=9.0, weight=1)
    heavy = overlay("heavy", ONLY_A, spec(lbl.ZONE, "In", "z1"), price=5.0, weight=2)
    found = apply(light, heavy)
    assert prices(found, "a") == {OD1: 5.0, OD2: 9.0, SPOT1: 5.0, SPOT2: 9.0}
    assert set(found.conditions.values()) == {OverlayCondition.SUCCEEDED}


def test_s186_capacity_is_the_types_and_other_names_merge() -> None:
    found = apply(
        overlay("one", ONLY_A, spec(lbl.ZONE, "In", "z2"), capacity={FUSE: 1}),
        overlay("two", ONLY_A, capacity={"x/y": 2}),
        overlay("three", capacity={FUSE: 8}, weight=5),
    )
    capacities = {offered_type.name: offered_type.capacity for offered_type in found.catalogues["default"].types}
    assert (capacities["a"][FUSE], capacities["a"]["x/y"], capacities["b"][FUSE]) == (8, 2, 8)
    assert "x/y" not in capacities["b"]
    assert set(found.conditions.values()) == {OverlayCondition.SUCCEEDED}


def test_s183_s187_e128_equal_weights_the_later_name_comes_first_and_the_other_conflicts() -> None:
    found = apply(overlay("a", price=1.0), overlay("b", ONLY_A, price=2.0))
    assert found.conditions == {"b": OverlayCondition.SUCCEEDED, "a": OverlayCondition.CONFLICT}
    assert prices(found, "a")[OD1] == 2.0
    assert prices(found, "b")[OD1] == 0.4  # nowhere is "a" applied, not even where "b" says nothing


def test_s187_a_conflict_in_one_node_pool_is_one_in_all() -> None:
    pools = [(pool("gold", labels={"tier": "gold"}), CATALOGUE), (pool("plain"), CATALOGUE)]
    gold = overlay("z", spec("tier", "In", "gold"), price=2.0)
    found = evaluate_overlays((overlay("a", price=1.0), gold), pools)
    assert found.conditions == {"z": OverlayCondition.SUCCEEDED, "a": OverlayCondition.CONFLICT}
    assert set(found.catalogues) == {"gold"}


def test_s187_even_equal_capacities_conflict_and_other_names_do_not() -> None:
    same = apply(overlay("a", capacity={FUSE: 1}), overlay("b", capacity={FUSE: 1}))
    assert same.conditions == {"b": OverlayCondition.SUCCEEDED, "a": OverlayCondition.CONFLICT}
    other = apply(overlay("a", capacity={"x/y": 1}), overlay("b", capacity={FUSE: 1}), overlay("c", price=1.0))
    assert set(other.conditions.values()) == {OverlayCondition.SUCCEEDED}


def test_s187_an_overlay_that_lost_an_offering_still_touched_it() -> None:
    found = apply(
        overlay("heavy", price=3.0, weight=9), overlay("b", price=2.0, weight=1), overlay("a", price=1.0, weight=1)
    )
    assert found.conditions == {
        "heavy": OverlayCondition.SUCCEEDED,
        "b": OverlayCondition.SUCCEEDED,
        "a": OverlayCondition.CONFLICT,
    }
    assert set(prices(found, "a").values()) == {3.0}


@pytest.mark.parametrize(
    "bad",
    [
        overlay("o", spec("kubernetes.io/hostname", "In", "x"), price=1.0),
        overlay("o", spec("a", "In"), price=1.0),
        overlay("o", spec("a", "NotIn"), price=1.0),
        overlay("o", capacity={"memory": 1}),
    ],
)
def test_s183_what_is_invalid_is_applied_nowhere(bad: NodeOverlay) -> None:
    assert apply(bad) == OverlayEvaluation({}, {"o": OverlayCondition.INVALID})


def test_s184_a_label_that_neither_pool_nor_type_defines_matches_nothing() -> None:
    assert apply(overlay("o", spec("tier", "In", "gold"), price=1.0)).catalogues == {}
    assert set(apply(overlay("o", spec("tier", "NotIn", "gold"), price=1.0)).catalogues) == {"default"}
    assert set(apply(overlay("o", spec(lbl.NODEPOOL, "In", "default"), price=1.0)).catalogues) == {"default"}


def test_s189_a_type_keeps_what_an_overlay_does_not_speak_of() -> None:
    """Unlike in the reference, its devices; and of its offerings all but the price."""
    gpus = ResourceSlice("", "gpu.example.com", "gpus", devices=(Device("gpu-0"),))
    reserved = Offering("z1", "reserved", 0.0, reservation_id="cr-1", reservation_capacity=3)
    given = replace(instance_type("a", 2, offerings=(reserved,)), slices=(gpus,))
    both = overlay("o", ONLY_A, price=0.05, capacity={FUSE: 8})
    (made,) = evaluate_overlays([both], [(pool(), Catalogue((given,)))]).catalogues["default"].types
    assert made.slices == (gpus,)
    assert made.offerings == (replace(reserved, price=0.05),)
    assert made.capacity == {**given.capacity, FUSE: 8}


def test_s184_labels_of_the_nodepool_and_its_template_are_looked_at_too() -> None:
    pools = [(pool("red", labels={"team": "red"}), CATALOGUE), (pool("blue", labels={"team": "blue"}), CATALOGUE)]
    for wanted in (spec("team", "In", "red"), spec(lbl.NODEPOOL, "In", "red"), spec("team", "NotIn", "blue")):
        assert set(evaluate_overlays([overlay("o", wanted, price=1.0)], pools).catalogues) == {"red"}


def test_s184_a_type_without_an_offering_that_matches_is_none_of_its_types() -> None:
    """Its capacity stays as it is too."""
    in_z2 = overlay("o", spec(lbl.ZONE, "In", "z2"), capacity={FUSE: 8})
    found = apply(in_z2).catalogues["default"].types
    assert [offered_type.name for offered_type in found if FUSE in offered_type.capacity] == ["a"]


def test_s188_a_nodepool_without_types_holds_up_no_other() -> None:
    found = evaluate_overlays([overlay("o", price=1.0)], [(pool("none"), Catalogue(())), (pool("some"), CATALOGUE)])
    assert set(found.catalogues) == {"some"}
    assert found.conditions == {"o": OverlayCondition.SUCCEEDED}


UNPRICED = Catalogue((
    instance_type("new", 2, offerings=(
        Offering("z1", lbl.ON_DEMAND, 0.0, available=False, zone_id="id1"),
        Offering("z2", lbl.ON_DEMAND, 0.0, available=False, zone_id="id2"),
        Offering("z1", lbl.SPOT, 0.5, available=False, zone_id="id1"),
    )),
), shifted=("id2",))  # fmt: skip


@pytest.mark.parametrize(
    ("requirements", "change", "sold"),
    [
        ((spec(lbl.INSTANCE_TYPE, "In", "new"),), {"price": 0.3}, True),
        ((spec(lbl.INSTANCE_TYPE, "In", "new"),), {"adjustment": Adjustment(0.3)}, False),
        ((spec(lbl.INSTANCE_TYPE, "In", "new"), ON_DEMAND), {"price": 0.3}, False),
        ((spec(lbl.INSTANCE_TYPE, "NotIn", "old"),), {"price": 0.3}, False),
    ],
    ids=["a price", "an adjustment", "more than types", "not In"],
)
def test_a208_an_overlay_sells_a_type_that_the_cloud_names_no_price_for(
    requirements: tuple[RequirementSpec, ...], change: dict[str, Any], sold: bool
) -> None:
    """Not in a shifted zone, and not an offering that has a price: that is unavailable for another reason."""
    found = evaluate_overlays([overlay("o", *requirements, **change)], [(pool(), UNPRICED)])
    (given,) = found.catalogues["default"].types
    assert [offering.available for offering in given.offerings] == [sold, False, False]


def changed(
    overlays: Sequence[NodeOverlay], *pools: NodePool, catalogue: Catalogue = CATALOGUE
) -> dict[str, tuple[str, Catalogue]]:
    return overlaid_catalogues(overlays, [(each, content(catalogue)[0], catalogue) for each in pools])


def test_s188_nodepools_that_no_overlay_tells_apart_share_one_catalogue() -> None:
    """Labels that no overlay speaks of tell nothing apart, and what no overlay changes stays the same object."""
    pools = [pool(f"p{number}", labels={"team": f"t{number}"}) for number in range(3)]
    found = changed([overlay("o", ONLY_A, ON_DEMAND, price=0.05), overlay("none", ONLY_A, ZONE_9, price=1.0)], *pools)
    (catalogue,) = {id(catalogue): catalogue for _, catalogue in found.values()}.values()
    assert set(found) == {"p0", "p1", "p2"}
    assert catalogue.types[1] is CATALOGUE.types[1]
    spot = [number for number, offer in enumerate(CATALOGUE.types[0].offerings) if offer.capacity_type == lbl.SPOT]
    assert all(catalogue.types[0].offerings[number] is CATALOGUE.types[0].offerings[number] for number in spot)


def test_s188_nodepools_that_are_told_apart_share_the_types_that_come_out_the_same() -> None:
    everywhere, red = overlay("all", price=9.0), overlay("red", ONLY_A, RED, price=5.0, weight=2)
    found = changed([everywhere, red], pool("p1", labels={"team": "red"}), pool("p2", labels={"team": "blue"}))
    ((_, first), (_, second)) = found["p1"], found["p2"]
    assert first.types[0] != second.types[0]
    assert first.types[1] is second.types[1]


def test_s188_a_catalogue_made_of_the_same_as_before_is_the_same_object() -> None:
    """Other labels, another NodePool and a change of an overlay that is not about it change nothing of it."""
    everywhere, red = overlay("all", price=9.5), overlay("red", ONLY_A, RED, price=5.0, weight=2)
    plain = pool("plain")
    before = changed([everywhere, red], plain, pool("p1", labels={"team": "red"}))
    after = changed(
        [everywhere, replace(red, price=4.0)],
        replace(plain, labels={"tier": "gold"}), pool("p1", labels={"team": "red"}), pool("p2"),
    )  # fmt: skip
    assert after["plain"][1] is after["p2"][1] is before["plain"][1]
    assert after["p1"] != before["p1"]


def test_s188_overlays_that_do_the_same_make_the_same_catalogue() -> None:
    one, two = (overlay(name, spec(lbl.NODEPOOL, "In", name), price=7.5) for name in ("p1", "p2"))
    found = changed([one, replace(two, weight=3)], pool("p1"), pool("p2"))
    assert found["p1"][1] is found["p2"][1]
