"""What a replacement may cost: the cheapest offering, and the dearest that a launch may end with (S-204 to S-207)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from kerf.engine.disruption.consolidation.commands import Command, decide
from kerf.engine.disruption.eligibility import Candidate, judge_node
from kerf.engine.disruption.pricing import Market, market_of
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirement, Requirements
from kerf.engine.model.reasons import Reason
from tests.support.scenarios.clusters import capacity, cluster, node, pod, pool

ANY = Requirements()
OFFERS = (
    Offering("a", "on-demand", 1.0), Offering("b", "on-demand", 1.5), Offering("a", "spot", 0.3),
    Offering("b", "spot", 0.9), Offering("c", "spot", 0.2), Offering("a", "reserved", 0.01, reservation_id="r1"),
)  # fmt: skip


def market(*offers: Offering, unavailable: Sequence[tuple[str, str, str]] = ()) -> Market:
    catalogue = Catalogue((InstanceType("t", capacity(2_000), offerings=offers),))
    return market_of(content(catalogue)[0], catalogue, frozenset(unavailable))


def only(key: str, *values: str) -> Requirements:
    return Requirements([Requirement(key, False, frozenset(values))])


def worst(requirements: Requirements, *offers: Offering, unavailable: Sequence[tuple[str, str, str]] = ()) -> float:
    (price,) = market(*(offers or OFFERS), unavailable=unavailable).launch_prices(["t"], requirements)
    return price


@pytest.mark.parametrize(
    ("requirements", "cheapest"),
    [
        (ANY, 0.01),
        (only(lbl.CAPACITY_TYPE, "spot"), 0.2),
        (only(lbl.ZONE, "b"), 0.9),
        (only(lbl.ZONE, "z"), math.inf),
    ],
)
def test_s205_the_cheapest_of_the_offerings_that_may_be_used(requirements: Requirements, cheapest: float) -> None:
    assert market(*OFFERS).cheapest("t", requirements) == cheapest


def test_s205_offerings_without_capacity_are_none() -> None:
    assert market(*OFFERS, unavailable=[("reserved", "t", "a")]).cheapest("t", ANY) == 0.2
    assert market(Offering("a", "spot", 0.2, available=False)).cheapest("t", ANY) == math.inf


def test_s206_the_dearest_of_the_first_of_reserved_spot_and_on_demand() -> None:
    assert worst(ANY) == 0.01
    assert worst(only(lbl.CAPACITY_TYPE, "spot", "on-demand")) == 0.9
    assert worst(only(lbl.CAPACITY_TYPE, "on-demand")) == 1.5
    assert worst(Requirements([*only(lbl.CAPACITY_TYPE, "spot", "on-demand"), *only(lbl.ZONE, "a", "c")])) == 0.3
    assert worst(only(lbl.ZONE, "z")) == math.inf


def test_s206_only_what_is_available_counts() -> None:
    assert worst(ANY, unavailable=[("reserved", "t", "a"), ("spot", "t", "b")]) == 0.3
    assert worst(ANY, unavailable=[("reserved", "", ""), ("spot", "", "")]) == 1.5


def answer(*types: InstanceType, requirement: RequirementSpec | None = None) -> Command | Reason:
    """For a node of 0.4 USD an hour whose pod any of the types holds."""
    old = InstanceType("large", capacity(8_000), offerings=(Offering("a", "on-demand", 0.4),))
    pools = (pool(requirements=(requirement,) if requirement else ()),)
    given = cluster(node("n1", "large", pod("a")), catalogue=Catalogue((*types, old)), pools=pools)
    found = judge_node(given.nodes[0], given)
    assert isinstance(found, Candidate)
    return decide(Simulator(given), [found])


def offered(name: str, *offers: Offering, family: str = "f") -> InstanceType:
    return InstanceType(name, capacity(2_000), requirements={"family": (family,)}, offerings=offers)


def test_s207_a_type_stays_whose_launch_is_cheaper_at_its_worst() -> None:
    """Strictly: as dear is not cheaper; and one whose cheapest offering alone is cheaper goes."""
    found = answer(
        offered("cheap", Offering("a", "on-demand", 0.39)),
        offered("as-dear", Offering("a", "on-demand", 0.4)),
        offered("perhaps", Offering("a", "spot", 0.1), Offering("b", "spot", 0.5)),
        offered("spot", Offering("a", "spot", 0.1), Offering("b", "spot", 0.2), Offering("b", "on-demand", 9.0)),
    )
    assert isinstance(found, Command)
    assert set(found.replacements[0].instance_types) == {"cheap", "spot"}


def test_s207_what_is_left_has_to_meet_minvalues_whatever_the_policy() -> None:
    types = [offered(name, Offering("a", "on-demand", cost), family=name) for name, cost in (("f", 0.1), ("g", 0.9))]
    assert isinstance(answer(*types, requirement=RequirementSpec("family", "Exists")), Command)
    found = answer(*types, requirement=RequirementSpec("family", "Exists", (), 2))
    assert isinstance(found, Reason)
    assert (found.code, found.params) == ("min-values", {"left": 1})


def test_s207_of_no_type_at_all_it_is_said_that_none_is_cheaper() -> None:
    """An empty list misses no minValues (S-108)."""
    dear = offered("dear", Offering("a", "on-demand", 0.9))
    found = answer(dear, requirement=RequirementSpec("family", "Exists", (), 1))
    assert isinstance(found, Reason)
    assert found.code == "nothing-cheaper"
