"""L-150…L-159, L-177, L-178, A-290…A-294: what follows from the cloud's answers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.record.decisions import FindInstance, LaunchInstance, TerminateInstance
from kerf.engine.record.observations import (
    EffectAnswered,
    LaunchAnswered,
    LaunchError,
    NodeClaimDeletionSeen,
    Observation,
)
from kerf.engine.scheduling.launchable.launch_offers import choose_offers
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from tests.support.lives import asked, claim_of, types
from tests.support.records import re_derived
from tests.support.world import CATALOGUE, World, pool
from tests.support.worlds.reservations import held, reserving

EFA = "vpc.amazonaws.com/efa"
ICE = "InsufficientInstanceCapacity"


def refused(ref: str, order: LaunchInstance, *kinds: str) -> Observation:
    errors = tuple(
        LaunchError(ICE, "", kind, zone, "on-demand") for kind in kinds for zone in ("us-west-2a", "us-west-2b")
    )
    return Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", code=ICE, errors=errors))


def test_l152_insufficient_capacity_ends_the_claim_and_the_next_pass_takes_the_next_type() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.see(refused(ref, order, "m5.large"))
    assert types(world)[-1] == "claim.launch-failed"
    (again,) = world.after(1_000)
    assert isinstance(again, LaunchInstance)
    assert {offer.instance_type for offer in again.offers} == {"r5.large", "m5.xlarge"}


def test_a212_an_offering_is_remembered_for_three_minutes_and_then_tried_again() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.see(refused(ref, order, "m5.large", "r5.large", "m5.xlarge", "c5.large"))
    assert world.after(1_000) == []
    assert world.runtime.next_due() == world.now - 1_000 + 180_000
    (again,) = world.after(179_000)
    assert isinstance(again, LaunchInstance)
    assert again.offers[0].instance_type == "m5.large"


def test_l155_another_error_is_tried_again_with_the_same_order_and_token() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    token = world.runtime.token(ref)
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code="InternalError")))
    (again,) = world.after(1_000)
    assert isinstance(again, LaunchInstance)
    assert (again.offers, again.again) == (order.offers, ref)
    ((second, _),) = world.launches()
    assert second != ref
    assert world.runtime.token(second) == token


def test_l178_no_instance_within_five_minutes_is_a_launch_timeout() -> None:
    world = asked()
    world.after(299_999)
    assert claim_of(world).state == "requested"
    world.after(1)
    assert "claim.launch-timed-out" in types(world)


@pytest.mark.parametrize("asks", [True, False])
def test_a315_l266_what_is_there_on_request_is_there_if_the_claim_asked(asks: bool) -> None:
    """Before the launch, as the smallest that it may become, and after it, until the Node tells."""
    kinds = tuple(replace(kind, capacity={**kind.capacity, EFA: 1}) for kind in CATALOGUE.types)
    world = World()
    world.prepare(catalogue=replace(CATALOGUE, types=kinds, on_request=(EFA,)))
    world.pending("a", more={EFA: 1} if asks else {})
    world.after(1_000)
    ((ref, order),) = world.launches()
    room = PoolCatalogues(world.runtime.state).over_types(claim_of(world), largest=False)
    assert (room.get(EFA, 0), bool(room["cpu"])) == (int(asks), True)
    world.answer_launch(ref, order)
    launched = claim_of(world)
    assert (launched.capacity.get(EFA, 0), launched.allocatable.get(EFA, 0)) == (int(asks), int(asks))
    assert launched.capacity["cpu"]
    assert re_derived(world.store) == world.store.entries


def test_an_instance_that_turns_up_after_its_claim_is_over_is_ended() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.after(300_000)
    (end,) = world.answer_launch(ref, order)
    assert isinstance(end, TerminateInstance)
    assert end.instance == "i-1"
    ((ref, _),) = world.intents
    assert world.see(Observation(EffectAnswered(ref, False, "RequestLimitExceeded"))) == []
    world.after(1_000)
    ((ref, _),) = ((r, i) for r, i in world.intents if isinstance(i, TerminateInstance))
    assert world.see(Observation(EffectAnswered(ref, True, "200"))) == []
    assert world.runtime.state.facts.orphans == {}


def test_a_claim_deleted_by_a_user_before_launch_is_cancelled() -> None:
    world = asked()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    assert types(world)[-1] == "claim.cancelled"


def test_l153_a_nodeclass_that_is_not_ready_ends_the_claim() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="nodeclass-not-ready", message="no subnets")))
    failed = world.store.entries[-1].payload
    assert (failed.kind, failed.message) == ("nodeclass-not-ready", "no subnets")


def test_l446_an_answer_may_bring_an_instance_and_errors_of_other_offerings() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    answer = LaunchAnswered(
        ref, order.claim, instance="i-1", provider_id="aws:///us-west-2b/i-1", instance_type="m5.large",
        zone="us-west-2b", capacity_type="on-demand",
        errors=(LaunchError(ICE, "", "m5.large", "us-west-2a", "on-demand"),),
    )  # fmt: skip
    world.see(Observation(answer))
    assert claim_of(world).state == "launched"
    assert "on-demand|m5.large|us-west-2a" in world.runtime.state.facts.unavailable


def test_a_launch_whose_answer_was_lost_is_looked_for_when_its_claim_is_over() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code="KERF502")))
    world.after(299_000)
    ((ref, _),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code="KERF502")))
    world.after(300_000)
    assert "claim.launch-timed-out" in types(world)
    world.after(60_000)
    ((ref, find),) = ((r, i) for r, i in world.intents if isinstance(i, FindInstance))
    assert find.claim == order.claim
    found = LaunchAnswered(ref, order.claim, instance="i-lost", adopted=True)
    (end,) = world.see(Observation(found))
    assert isinstance(end, TerminateInstance)
    assert end.instance == "i-lost"
    assert world.runtime.state.facts.searches == {}


def test_a_search_that_fails_is_repeated_and_one_that_finds_nothing_is_not() -> None:
    world = asked()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.after(60_000)
    ((ref, find),) = ((r, i) for r, i in world.intents if isinstance(i, FindInstance))
    world.see(Observation(LaunchAnswered(ref, find.claim, kind="error", code="RequestLimitExceeded")))
    world.after(1_000)
    ((ref, find),) = ((r, i) for r, i in world.intents if isinstance(i, FindInstance))
    world.see(Observation(LaunchAnswered(ref, find.claim, kind="not-found")))
    assert world.runtime.state.facts.searches == {}


# ── reserved capacity ──────────────────────────────────────────────────────────────────────────────────────────────


ALL = tuple(kind.name for kind in CATALOGUE.types)
LENT = replace(held("cr-lent", left=9), interruptible=True)


@pytest.mark.parametrize(
    ("reservations", "chosen"),
    [
        ((held("cr-1"),), "cr-1"),
        ((held("cr-1", left=1), held("cr-2", left=3)), "cr-2"),
        ((held("cr-1", kind="capacity-block"), held("cr-2")), "cr-2"),
        ((held("cr-1", kind="capacity-block", price=0.0), held("cr-2")), "cr-1"),
        ((held("cr-1", left=0),), ""),
        ((LENT, held("cr-2", kind="capacity-block")), "cr-2"),
        ((LENT, held("cr-2", left=0)), "cr-lent"),
    ],
    ids=["the one", "most left", "default first", "the cheapest kind", "nothing left", "lent last", "lent alone"],
)
def test_a222_a224_a229_a480_reserved_capacity_comes_first(reservations: tuple[Offering, ...], chosen: str) -> None:
    found = choose_offers(reserving(*reservations), ALL, Requirements(()), frozenset(), max_types=60)
    assert found.reservation == chosen
    assert found.capacity_type == (lbl.RESERVED if chosen else lbl.SPOT)
    assert [offer.instance_type for offer in found.offers if chosen] == ["m5.large"] * bool(chosen)


DEAR, BLOCK = held("cr-plain", price=3e-8), held("cr-block", kind="capacity-block", price=1e-8)
GPU = {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("plain", "exotic", "more", "chosen"),
    [
        (DEAR, held("cr-gpu"), {}, "cr-plain"),
        (replace(DEAR, available=False), held("cr-gpu"), {}, "cr-gpu"),
        (DEAR, BLOCK, {}, "cr-block"),
        (replace(DEAR, interruptible=True), held("cr-gpu"), {}, "cr-gpu"),
        (DEAR, held("cr-gpu"), {"min_values": 2}, "cr-gpu"),
    ],
    ids=["plain first", "no other left", "a block is one type", "of one kind", "minValues keep all types"],
)
def test_a225_a_reservation_of_accelerated_types_is_kept_for_who_needs_them(
    plain: Offering, exotic: Offering, more: dict[str, int], chosen: str
) -> None:
    """A-222, A-223: among those of the kind that is chosen, and never where a block is."""
    offered = {"m5.xlarge": (plain, {}), "m5.large": (exotic, GPU)}
    kinds = tuple(
        replace(
            kind, offerings=(*kind.offerings, offered[kind.name][0]), capacity=kind.capacity | offered[kind.name][1]
        )
        if kind.name in offered
        else kind
        for kind in CATALOGUE.types
    )
    asked_for = Requirements.of_specs([RequirementSpec(lbl.INSTANCE_TYPE, "In", ("m5.large", "m5.xlarge"), **more)])
    found = choose_offers(replace(CATALOGUE, types=kinds), ALL, asked_for, frozenset(), max_types=60)
    assert found.reservation == chosen


def test_a222_a_claim_may_ask_for_capacity_that_is_not_lent() -> None:
    kept = Requirements.of_labels({lbl.RESERVATION_INTERRUPTIBLE: "false"})
    assert choose_offers(reserving(LENT), ALL, kept, frozenset(), max_types=60).offers == ()
    found = choose_offers(reserving(held("cr-1"), LENT), ALL, kept, frozenset(), max_types=60)
    assert found.reservation == "cr-1"
    lent = Requirements.of_labels({lbl.RESERVATION_INTERRUPTIBLE: "true"})
    assert choose_offers(reserving(held("cr-1"), LENT), ALL, lent, frozenset(), max_types=60).reservation == "cr-lent"


@pytest.mark.parametrize(
    "asked",
    [{lbl.RESERVATION_ID: "cr-1"}, {lbl.RESERVATION_TYPE: "default"}, {lbl.RESERVATION_INTERRUPTIBLE: "false"}],
    ids=["id", "type", "interruptible"],
)
def test_a199_a221_a_claim_for_reservations_is_launched_as_nothing_else(asked: dict[str, str]) -> None:
    used_up = reserving(held("cr-1", left=0))
    assert choose_offers(used_up, ALL, Requirements.of_labels(asked), frozenset(), max_types=60).offers == ()
    (key,) = asked
    others = Requirements.of_specs([RequirementSpec(key, "DoesNotExist")])
    assert choose_offers(used_up, ALL, others, frozenset(), max_types=60).capacity_type == lbl.SPOT


@pytest.mark.parametrize(("reservation", "told"), [(held("cr-1"), "false"), (LENT, "true")])
def test_a316_a_node_is_labelled_with_its_reservation_and_whether_that_is_lent(
    reservation: Offering, told: str
) -> None:
    world = World()
    said = {lbl.CAPACITY_TYPE: (lbl.RESERVED,), lbl.RESERVATION_ID: (reservation.reservation_id,)}
    sold = [kind for kind in reserving(reservation).types if kind.name == "m5.large"]
    catalogue = Catalogue(tuple(replace(kind, requirements={**kind.requirements, **said}) for kind in sold))
    world.prepare(pool(capacity_type=lbl.RESERVED), catalogue)
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    labels = claim_of(world).labels
    assert [labels[key] for key in lbl.OF_RESERVATIONS] == [reservation.reservation_id, "default", told]


def test_a220_reserved_capacity_only_where_it_is_admitted_and_to_be_had() -> None:
    catalogue = reserving(held("cr-1"))
    on_demand = Requirements.of_labels({lbl.CAPACITY_TYPE: lbl.ON_DEMAND})
    assert choose_offers(catalogue, ALL, on_demand, frozenset(), max_types=60).capacity_type == lbl.ON_DEMAND
    other_zone = Requirements.of_labels({lbl.ZONE: "us-west-2b"})
    assert choose_offers(catalogue, ALL, other_zone, frozenset(), max_types=60).capacity_type == lbl.SPOT
    refused = frozenset([(lbl.RESERVED, "m5.large", "us-west-2a")])
    assert choose_offers(catalogue, ALL, Requirements(()), refused, max_types=60).capacity_type == lbl.SPOT
    another = Requirements.of_labels({lbl.CAPACITY_TYPE: lbl.RESERVED, lbl.RESERVATION_ID: "cr-9"})
    assert choose_offers(catalogue, ALL, another, frozenset(), max_types=60).offers == ()


def test_a315_a316_what_a_claim_has_of_its_type() -> None:
    """No resource of which there is none, no label of several values, none of a reservation that it does not use, and
    no zone id that nobody told."""
    told = {lbl.ZONE_ID: ("usw2-az1",), lbl.RESERVATION_ID: ("cr-1",), "one": ("a",), "many": ("a", "b")}
    kinds = tuple(
        replace(kind, capacity={**kind.capacity, "nvidia.com/gpu": 0}, requirements=kind.requirements | told)
        for kind in CATALOGUE.types
    )
    world = World()
    world.prepare(pool(), replace(CATALOGUE, types=kinds))
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    claim = claim_of(world)
    assert "cpu" in claim.capacity
    assert "nvidia.com/gpu" not in {*claim.capacity, *claim.allocatable}
    assert claim.labels["one"] == "a"
    assert {"many", lbl.ZONE_ID, lbl.RESERVATION_ID}.isdisjoint(claim.labels)


def test_a316_the_zone_id_is_the_one_that_the_answer_tells() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order, zone_id="usw2-az7")
    assert claim_of(world).labels[lbl.ZONE_ID] == "usw2-az7"
