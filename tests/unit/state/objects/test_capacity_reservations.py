"""What is left of a capacity reservation, told by itself (A-125, A-210)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.observations import (
    TAKEN_BACK,
    CatalogueSeen,
    InterruptionSeen,
    LaunchAnswered,
    LaunchError,
    ObjectGone,
    Observation,
    ReservationsSeen,
)
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from kerf.engine.scheduling.launchable.remaining_reservations import catalogue_with_reservations
from kerf.engine.scheduling.planner import CompiledProblem
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.scheduling.problem.problem import MAX_COMPILED_PER_NODE
from kerf.engine.state import snapshot
from tests.support.records import re_derived
from tests.support.world import NODE_CLASS, Mi, World, pool
from tests.support.worlds.reservations import held, reserving

KEY = NODE_CLASS.key


def world(left: int) -> World:
    """The catalogue was made when `cr-1` had so many m5.large left."""
    made = World()
    made.prepare()
    catalogue = reserving(held("cr-1", left=left))
    digest, _ = content(catalogue)
    requirements = (RequirementSpec(lbl.CAPACITY_TYPE, "In", (lbl.ON_DEMAND, lbl.RESERVED)),)
    made.see(Observation(CatalogueSeen(KEY, digest), {digest: catalogue}))
    made.see(Observation(replace(pool(), requirements=requirements)))
    return made


def capacity_types(made: World) -> list[str]:
    """Of the launches for two pods that need a node each."""
    made.pending("a", "b", memory=5_000 * Mi)
    made.after(1_000)
    return sorted(order.capacity_type for _, order in made.launches())


def test_a125_the_latest_number_counts_and_not_that_of_the_catalogue() -> None:
    assert capacity_types(world(1)).count(lbl.RESERVED) == 1
    more = world(1)
    more.see(Observation(ReservationsSeen(KEY, {"cr-1": 2})))
    assert capacity_types(more) == [lbl.RESERVED] * 2
    less = world(2)
    less.see(Observation(ReservationsSeen(KEY, {"cr-1": 1})))
    assert capacity_types(less).count(lbl.RESERVED) == 1
    assert re_derived(less.store) == less.store.entries


def test_s58_s112_a_launch_on_its_way_has_taken_its_instance() -> None:
    """Of what was left by the catalogue, and of what was told since. The reference makes no plan before it is there."""
    told = world(3)
    told.see(Observation(ReservationsSeen(KEY, {"cr-1": 1})))
    for made in (world(1), told):
        ordered = []
        for name in "ab":
            made.pending(name, memory=5_000 * Mi)
            made.after(1_000)
            ordered += [order.capacity_type for _, order in made.launches()]
        assert ordered == [lbl.RESERVED, lbl.ON_DEMAND]


def test_the_catalogue_stays_the_one_that_is_recorded() -> None:
    made = world(2)
    state = made.runtime.state
    digest = state.facts.catalogues[KEY]
    assert catalogue_with_reservations(state, KEY) == digest
    made.see(Observation(ReservationsSeen(KEY, {"cr-1": 1, "cr-other": 5})))
    own = catalogue_with_reservations(state, KEY)
    assert state.facts.catalogues[KEY] == digest != own == PoolCatalogues(state).of("default")
    offerings = [o for kind in state.indexes.blobs.catalogue(own).types for o in kind.offerings if o.reservation_id]
    assert [(offering.reservation_id, offering.reservation_capacity) for offering in offerings] == [("cr-1", 1)]
    recorded = [o for kind in state.indexes.blobs.catalogue(digest).types for o in kind.offerings if o.reservation_id]
    assert [offering.reservation_capacity for offering in recorded] == [2]


def test_after_a_restart_and_a_trim_it_is_made_again() -> None:
    made = world(2)
    made.see(Observation(ReservationsSeen(KEY, {"cr-1": 1})))
    state = made.runtime.state
    own = catalogue_with_reservations(state, KEY)
    state.indexes.blobs.trim((), set(state.facts.catalogues.values()))
    assert not state.indexes.blobs.has_catalogue(own)
    assert catalogue_with_reservations(state, KEY) == own
    twin = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    assert catalogue_with_reservations(twin, KEY) == own


def test_a_nodeclass_that_is_gone_has_none() -> None:
    made = world(2)
    made.see(Observation(ReservationsSeen(KEY, {"cr-1": 1})))
    made.see(Observation(ObjectGone("nodeclass", KEY)))
    assert (made.runtime.state.facts.reservations, catalogue_with_reservations(made.runtime.state, KEY)) == ({}, "")


def test_what_is_compiled_of_a_node_that_stays_as_it_is_is_not_kept_for_ever() -> None:
    """Each launch into a reservation makes another catalogue: for each there was something more of every node."""
    made = world(1)
    made.see(Observation(Node("alone", ready=True, allocatable={"cpu": 4_000, "memory": 8_192 * Mi, "pods": 10})))
    same, known = set(), []
    for left in range(2, 3 * MAX_COMPILED_PER_NODE):
        made.see(Observation(ReservationsSeen(KEY, {"cr-1": left})))
        problem = problem_of(made.runtime.state, made.now)
        CompiledProblem(problem)
        KubeScheduler(problem)
        (node,) = problem.nodes
        same.add(id(node))
        known.append(len(node._compiled))
    assert len(same) == 1
    assert max(known) == MAX_COMPILED_PER_NODE


def test_a297_a_reservation_that_has_nothing_left_says_nothing_of_another_one_of_its_type_and_zone() -> None:
    made = World()
    made.prepare(replace(pool(), requirements=()), reserving(held("cr-1", left=2), held("cr-2")))
    made.see(Observation(ReservationsSeen(KEY, {"cr-1": 2, "cr-2": 1})))
    made.pending("a")
    made.after(1_000)
    named = []
    while made.launches():
        ((ref, order),) = made.launches()
        named.append(order.reservation)
        offer, code = order.offers[0], "ReservationCapacityExceeded"
        error = LaunchError(code, "", offer.instance_type, offer.zone, lbl.RESERVED, reservation=order.reservation)
        if order.reservation:
            made.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=(error,))))
        made.after(1_000)
    assert named == ["cr-1", "cr-2", ""]
    assert made.runtime.state.facts.unavailable == {}
    assert made.runtime.state.facts.reservations[KEY].left == {"cr-1": 0, "cr-2": 0}
    assert re_derived(made.store) == made.store.entries


def test_a439_after_a_reservation_that_was_used_up_the_next_claim_is_on_demand() -> None:
    made = world(1)
    made.see(Observation(ReservationsSeen(KEY, {"cr-1": 1})))
    made.pending("a", memory=5_000 * Mi)
    made.after(1_000)
    ((ref, first),) = made.launches()
    offers = {(offer.instance_type, offer.zone) for offer in first.offers}
    assert (first.capacity_type, first.reservation, offers) == (lbl.RESERVED, "cr-1", {("m5.large", "us-west-2a")})
    code = "ReservationCapacityExceeded"
    error = LaunchError(code, "", "m5.large", "us-west-2a", lbl.RESERVED, reservation="cr-1")
    made.see(Observation(LaunchAnswered(ref, first.claim, kind="insufficient-capacity", errors=(error,))))
    assert first.claim not in made.runtime.state.facts.claims
    assert made.runtime.state.facts.reservations[KEY].left == {"cr-1": 0}
    made.after(1_000)
    ((_, second),) = made.launches()
    assert (second.capacity_type, second.reservation) == (lbl.ON_DEMAND, "")
    assert ("m5.large", "us-west-2a") in {(offer.instance_type, offer.zone) for offer in second.offers}


@pytest.mark.parametrize("kind", [TAKEN_BACK, "instance_stopped"])
def test_a360_a_reservation_whose_owner_takes_a_place_back_has_nothing_left(kind: str) -> None:
    """The record says so with the message: the pods that have to leave are not planned onto it again."""
    made = world(3)
    made.see(Observation(ReservationsSeen(KEY, {"cr-1": 3, "cr-2": 1})))
    made.pending("first")
    made.after(1_000)
    ((ref, order),) = made.launches()
    made.answer_launch(ref, order)
    made.see(Observation(InterruptionSeen("m-1", kind, "i-1")))
    taken = kind == TAKEN_BACK
    assert made.runtime.state.facts.reservations[KEY].left == {"cr-1": 0 if taken else 3, "cr-2": 1}
    assert set(capacity_types(made)) == {lbl.ON_DEMAND if taken else lbl.RESERVED}
    made.see(Observation(ReservationsSeen(KEY, {"cr-1": 1, "cr-2": 1})))
    assert made.runtime.state.facts.reservations[KEY].left == {"cr-1": 1, "cr-2": 1}
    assert re_derived(made.store) == made.store.entries
