"""Which offerings a launch may draw from, filter by filter (A-221 to A-229, A-435 to A-438)."""

from __future__ import annotations

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.record.decisions import Offer
from kerf.engine.scheduling.launchable.launch_offers import choose_offers

A, B = "us-west-2a", "us-west-2b"
EVERYTHING = Requirements(())


def kind(name: str, *offerings: Offering, **capacity: int) -> InstanceType:
    return InstanceType(name, {"cpu": 2_000, **capacity}, {}, {lbl.INSTANCE_TYPE: (name,)}, offerings)


def on_demand(price: float, zone: str = A, *, available: bool = True) -> Offering:
    return Offering(zone, lbl.ON_DEMAND, price, available=available)


def spot(price: float, zone: str = A) -> Offering:
    return Offering(zone, lbl.SPOT, price)


def chosen(
    *kinds: InstanceType, requirements: Requirements = EVERYTHING, max_types: int = 60
) -> tuple[str, tuple[Offer, ...]]:
    names = tuple(instance_type.name for instance_type in kinds)
    found = choose_offers(Catalogue(kinds), names, requirements, frozenset(), max_types=max_types)
    return found.capacity_type, found.offers


def names(found: tuple[str, tuple[Offer, ...]]) -> list[str]:
    return [offer.instance_type for offer in found[1]]


def least(key: str, count: int) -> Requirements:
    return Requirements.of_specs([RequirementSpec(key, "Exists", min_values=count)])


def test_a221_only_what_is_asked_for_and_to_be_had() -> None:
    given = kind("m5.large", on_demand(1.0, A), on_demand(1.0, B), on_demand(0.5, "us-west-2c", available=False))
    zone = Requirements.of_labels({lbl.ZONE: B})
    assert chosen(given)[1] == (Offer("m5.large", A, 1.0), Offer("m5.large", B, 1.0))
    assert chosen(given, requirements=zone)[1] == (Offer("m5.large", B, 1.0),)
    assert chosen(given, requirements=Requirements.of_labels({lbl.CAPACITY_TYPE: lbl.SPOT}))[1] == ()


@pytest.mark.parametrize(
    "exotic",
    [
        kind("m5.metal", on_demand(0.1)), kind("c5.metal-24xl", on_demand(0.1)),
        *(kind("x.large", on_demand(0.1), **{resource: 1}) for resource in (
            "nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore")),
    ],
    ids=lambda given: " ".join([given.name, *sorted(set(given.capacity) - {"cpu"})]),
)  # fmt: skip
def test_a225_a437_metal_and_accelerators_only_where_nothing_else_is_left(exotic: InstanceType) -> None:
    plain = kind("m5.large", on_demand(1.0))
    assert names(chosen(exotic, plain)) == ["m5.large"]
    assert names(chosen(exotic)) == [exotic.name]


def test_a226_spot_that_costs_more_than_the_cheapest_on_demand_is_left_out() -> None:
    cheap, dear = kind("small", on_demand(0.06), spot(0.03)), kind("large", on_demand(0.2), spot(0.07))
    assert chosen(cheap, dear) == (lbl.SPOT, (Offer("small", A, 0.03),))


def test_a226_not_where_only_one_of_the_two_is_allowed() -> None:
    given = kind("small", on_demand(0.01), spot(0.03))
    only = Requirements.of_labels({lbl.CAPACITY_TYPE: lbl.SPOT})
    assert chosen(given, requirements=only) == (lbl.SPOT, (Offer("small", A, 0.03),))


def test_a435_spot_at_the_price_of_on_demand_is_kept() -> None:
    assert chosen(kind("m5.large", on_demand(0.05), spot(0.05))) == (lbl.SPOT, (Offer("m5.large", A, 0.05),))


def test_a436_where_all_spot_is_dearer_the_launch_is_on_demand() -> None:
    found = chosen(kind("small", on_demand(0.04)), kind("large", on_demand(0.1), spot(0.06)))
    assert found == (lbl.ON_DEMAND, (Offer("small", A, 0.04), Offer("large", A, 0.1)))


def test_a225_a226_a438_min_values_leave_metal_and_dear_spot_in() -> None:
    found = chosen(
        kind("small", on_demand(0.04)), kind("large", spot(0.06)), kind("m5.metal", spot(0.5)),
        requirements=least(lbl.INSTANCE_TYPE, 2),
    )  # fmt: skip
    assert found == (lbl.SPOT, (Offer("large", A, 0.06), Offer("m5.metal", A, 0.5)))


def test_a228_the_sixty_cheapest_types_by_their_cheapest_offering() -> None:
    kinds = [kind(f"t{number:02}", on_demand(1.0 + number), on_demand(100.0 - number, B)) for number in range(70)]
    found = chosen(*kinds[::-1])
    kept = {f"t{number:02}" for number in [*range(45), *range(55, 70)]}
    assert {offer.instance_type for offer in found[1]} == kept, "t69 costs 31 in the other zone, t54 to t45 most"
    assert len(found[1]) == 120
    assert found[1] == tuple(sorted(found[1], key=lambda offer: offer.price))


def test_a228_sixty_that_are_fewer_than_min_values_are_asked_for_all_the_same() -> None:
    """Unlike the reference, which launches nothing then: the plan has looked at all types that are left."""
    kinds = [kind(f"t{number}", on_demand(1.0 + number)) for number in range(4)]
    assert names(chosen(*kinds, requirements=least(lbl.INSTANCE_TYPE, 4), max_types=3)) == ["t0", "t1", "t2"]


def test_a229_one_launch_has_one_capacity_type() -> None:
    given = kind("m5.large", on_demand(0.1, A), spot(0.05, B))
    assert chosen(given) == (lbl.SPOT, (Offer("m5.large", B, 0.05),))
    only_on_demand = Requirements.of_labels({lbl.CAPACITY_TYPE: lbl.ON_DEMAND})
    assert chosen(given, requirements=only_on_demand) == (lbl.ON_DEMAND, (Offer("m5.large", A, 0.1),))
