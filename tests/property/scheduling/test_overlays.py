"""S-183 to S-187: overlays as the rules say it of one type of one NodePool after the other, without what they share."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodeoverlays import Adjustment, NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirement, Requirements
from kerf.engine.scheduling.launchable.node_overlays import (
    OverlayCondition,
    matched_offerings,
    overlaid_catalogues,
    overlay_conditions,
)
from tests.support.scenarios.problems import pool
from tests.support.strategies.examples import examples

VALUES = {
    lbl.INSTANCE_TYPE: ("a", "b", "c"),
    lbl.ZONE: ("z1", "z2"),
    lbl.CAPACITY_TYPE: (lbl.ON_DEMAND, lbl.SPOT, lbl.RESERVED),
    lbl.ZONE_ID: ("i1", "i2"),
    lbl.RESERVATION_ID: ("r1", "r2"),
    lbl.NODEPOOL: ("p0", "p1", "p2"),
    "team": ("red", "blue"),
    "size": ("1", "4", "9", "x"),
}
OF_TYPES = tuple(key for key in VALUES if key != lbl.NODEPOOL)
OPERATORS = ("In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lte")
World = tuple[list[NodeOverlay], list[tuple[NodePool, Catalogue]]]


def drawn_type(draw: random.Random, name: str) -> InstanceType:
    known = draw.sample(OF_TYPES, draw.randint(0, 5))
    requirements = {key: tuple(draw.sample(VALUES[key], draw.randint(0, 2))) for key in known}
    offerings = tuple(
        Offering(
            draw.choice(VALUES[lbl.ZONE]),
            draw.choice(VALUES[lbl.CAPACITY_TYPE]),
            draw.choice((0.0, 0.1, 0.2)),
            available=draw.random() < 0.5,
            zone_id=draw.choice(("", "i1", "i2")),
            reservation_id=draw.choice(("", "", "r1", "r2")),
            tenancy=draw.choice(("default", "dedicated")),
        )
        for _ in range(draw.randint(0, 4))
    )
    return InstanceType(name, {"cpu": 1000, "x/y": 3}, {}, requirements, offerings)


def drawn_overlay(draw: random.Random, name: str) -> NodeOverlay:
    requirements = []
    for key in draw.choices(tuple(VALUES), k=draw.randint(0, 2)):
        operator = draw.choice(OPERATORS)
        several = draw.sample(VALUES[key], draw.randint(1, 2))
        values = {"Exists": [], "DoesNotExist": [], "Gt": ["3"], "Lte": ["4"]}.get(operator, several)
        requirements.append(RequirementSpec(key, operator, tuple(values)))
    change = draw.choice(({}, {"price": 0.5}, {"price": 1.0}, {"adjustment": Adjustment(-10, percent=True)}))
    capacity = {resource: draw.randint(1, 3) for resource in draw.sample(("x/y", "q/z"), draw.choice((0, 0, 1, 2)))}
    return NodeOverlay(name, requirements=tuple(requirements), capacity=capacity, weight=draw.randint(0, 2), **change)


def world(seed: int) -> World:
    draw = random.Random(seed)
    catalogues = [
        Catalogue(tuple(drawn_type(draw, name) for name in draw.sample("abc", draw.randint(0, 3))), shifted=shifted)
        for shifted in ((), ("i2",))
    ]
    pools = [
        (
            pool(name, labels={"team": draw.choice(VALUES["team"])} if draw.random() < 0.6 else {}),
            draw.choice(catalogues),
        )
        for name in VALUES[lbl.NODEPOOL]
    ]
    return [drawn_overlay(draw, f"o{number}") for number in range(draw.randint(1, 5))], pools


def about(overlay: NodeOverlay, of: NodePool, kind: InstanceType) -> list[int]:
    """The numbers of a type's offerings that an overlay is about (S-184)."""
    asked = Requirements.of_specs(overlay.requirements)
    said = {
        lbl.INSTANCE_TYPE: (kind.name,),
        lbl.ZONE: tuple(offer.zone for offer in kind.offerings),
        lbl.CAPACITY_TYPE: tuple(offer.capacity_type for offer in kind.offerings),
        **kind.requirements,
    }
    known = [Requirement(key, False, frozenset(values)) for key, values in said.items()]
    known += Requirements.of_labels({**of.labels, lbl.NODEPOOL: of.name})
    if not Requirements(known).compatible(asked):
        return []
    offered = [
        {
            lbl.ZONE: o.zone,
            lbl.CAPACITY_TYPE: o.capacity_type,
            lbl.ZONE_ID: o.zone_id,
            lbl.RESERVATION_ID: o.reservation_id,
        }
        for o in kind.offerings
    ]
    labels = [Requirements.of_labels({key: value for key, value in offer.items() if value}) for offer in offered]
    return [number for number, each in enumerate(labels) if asked.compatible(each, lbl.WELL_KNOWN)]


def by_the_rules(
    overlays: list[NodeOverlay], pools: list[tuple[NodePool, Catalogue]]
) -> tuple[dict[str, Catalogue], dict[str, OverlayCondition]]:
    set_by: dict[tuple[str, str, int | str], NodeOverlay] = {}
    touched: dict[tuple[str, str, int | str], int] = {}
    conditions = {}
    for overlay in sorted(sorted(overlays, key=lambda o: o.name, reverse=True), key=lambda o: -o.weight):
        places = [
            (of.name, kind.name, what)
            for of, catalogue in pools
            for kind in catalogue.types
            if (numbers := about(overlay, of, kind))
            for what in (*(numbers if overlay.prices else ()), *overlay.capacity)
        ]
        if any(touched.get(place) == overlay.weight for place in places):
            conditions[overlay.name] = OverlayCondition.CONFLICT
            continue
        conditions[overlay.name] = OverlayCondition.SUCCEEDED
        for place in places:
            touched[place] = overlay.weight
            set_by.setdefault(place, overlay)
    made = {}
    for of, catalogue in pools:
        types = []
        for kind in catalogue.types:
            own = {
                what: o for (name, type_name, what), o in set_by.items() if (name, type_name) == (of.name, kind.name)
            }
            offers = [
                priced(offer, own[number], catalogue.shifted) if number in own else offer
                for number, offer in enumerate(kind.offerings)
            ]
            resources = {what: o.capacity[what] for what, o in own.items() if isinstance(what, str)}
            overlaid = (*(("price",) if len(own) > len(resources) else ()), *(("capacity",) if resources else ()))
            capacity = {**kind.capacity, **resources}
            types.append(replace(kind, offerings=tuple(offers), capacity=capacity, overlaid=overlaid))
        if any(kind.overlaid for kind in types):
            made[of.name] = replace(catalogue, types=tuple(types))
    return made, conditions


def priced(offer: Offering, overlay: NodeOverlay, shifted: tuple[str, ...]) -> Offering:
    """An offering at the price of an overlay (S-185), and whether that sells it (A-208)."""
    of_types_alone = [(r.key, r.operator) for r in overlay.requirements] == [(lbl.INSTANCE_TYPE, "In")]
    unpriced = offer.price == 0 and offer.capacity_type != lbl.RESERVED and offer.zone_id not in shifted
    sold = of_types_alone and overlay.price is not None and unpriced
    return replace(offer, price=overlay.priced(offer.price), available=offer.available or sold)


@given(st.integers(0, 2**32).map(world))
@settings(max_examples=examples(200), deadline=None)
def test_s184_s187_what_nodepools_share_changes_no_result(given_world: World) -> None:
    overlays, pools = given_world
    catalogues, conditions = by_the_rules(overlays, pools)
    found = overlaid_catalogues(overlays, [(each, content(catalogue)[0], catalogue) for each, catalogue in pools])
    assert found == {name: (content(catalogue)[0], catalogue) for name, catalogue in catalogues.items()}
    assert overlay_conditions(overlays, pools) == conditions
    for overlay in overlays:
        for of, catalogue in pools:
            for kind in catalogue.types:
                assert matched_offerings(overlay, of, kind) == about(overlay, of, kind)
