"""A-212, A-293…A-295: for whom an offering is unavailable after a refusal."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import CatalogueSeen, LaunchAnswered, LaunchError, NodeClassSeen, Observation
from kerf.engine.state.nodeclaims.unavailable import avoided, remember, unavailable, unavailable_to
from kerf.projections.cluster_status.cluster_status import cluster_status
from tests.support.records import re_derived
from tests.support.world import CATALOGUE, NODE_CLASS, World, pool

A, B = "us-west-2a", "us-west-2b"
OTHER = replace(NODE_CLASS, name="other")


def sees_class(ref: NodeClassRef, terms: NodeClassTerms, catalogue: Catalogue = CATALOGUE) -> list[Observation]:
    digest, _ = content(catalogue)
    return [
        Observation(NodeClassSeen(ref.group, ref.kind, ref.name, ready=True, terms=terms)),
        Observation(CatalogueSeen(ref.key, digest), {digest: catalogue}),
    ]


def two_classes(first: NodeClassTerms, second: NodeClassTerms) -> World:
    """A pod waits. The NodePool `default` is of the first class; the NodePool `other`, of the second, weighs less."""
    world = World()
    other = replace(pool("other"), node_class=OTHER)
    world.see(*sees_class(NODE_CLASS, first), *sees_class(OTHER, second))
    world.see(Observation(pool(weight=10)), Observation(other))
    world.pending("a")
    world.after(1_000)
    return world


def refused(world: World, **error: Any) -> list[LaunchInstance]:
    """What is launched after the cloud has refused the first offer with this error."""
    ((ref, order),) = world.launches()
    offer = order.offers[0]
    told = LaunchError(instance_type=offer.instance_type, zone=offer.zone, capacity_type="on-demand", **error)
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=(told,))))
    return [intent for intent in world.after(1_000) if isinstance(intent, LaunchInstance)]


def zones(launch: LaunchInstance) -> set[str]:
    return {offer.zone for offer in launch.offers}


NO_ADDRESSES = {"code": "InsufficientFreeAddressesInSubnet", "subnet": "subnet-1"}


def test_a212_a293_a_full_subnet_closes_its_zone_for_its_class_and_all_types() -> None:
    world = two_classes(NodeClassTerms(zones={A: ("subnet-1",), B: ("subnet-2",)}), NodeClassTerms())
    ((_, order),) = world.launches()
    assert (order.node_pool, zones(order)) == ("default", {A, B})
    (again,) = refused(world, **NO_ADDRESSES)
    assert (again.node_pool, zones(again)) == ("default", {B})
    assert {offer.instance_type for offer in again.offers} == {offer.instance_type for offer in order.offers}
    assert re_derived(world.store) == world.store.entries


def test_a212_a451_a_zone_with_another_subnet_stays_open() -> None:
    world = two_classes(NodeClassTerms(zones={A: ("subnet-1", "subnet-2"), B: ("subnet-3",)}), NodeClassTerms())
    (again,) = refused(world, **NO_ADDRESSES)
    assert zones(again) == {A, B}


def test_a212_a_class_whose_subnets_are_all_full_leaves_the_other_class_alone_for_three_minutes() -> None:
    world = two_classes(NodeClassTerms(zones={A: ("subnet-1",), B: ("subnet-1",)}), NodeClassTerms())
    (again,) = refused(world, **NO_ADDRESSES)
    assert (again.node_pool, zones(again)) == ("other", {A, B})
    facts = world.runtime.state.facts
    assert list(avoided(facts, world.now)) == ["subnet-1"]
    assert list(cluster_status(world.runtime.state, world.now).unavailable) == ["subnet-1"]
    assert avoided(facts, world.now + 180_000) == {}


def test_a212_pods_without_a_place_are_planned_when_the_subnet_is_tried_again() -> None:
    full = NodeClassTerms(zones={A: ("subnet-1",), B: ("subnet-1",)})
    world = two_classes(full, full)
    assert refused(world, **NO_ADDRESSES) == []
    assert world.runtime.next_due() == world.now - 1_000 + 180_000
    assert [type(intent) for intent in world.after(179_000)] == [LaunchInstance]
    assert avoided(world.runtime.state.facts, world.now) == {}


def test_a213_another_refusal_begins_the_three_minutes_anew() -> None:
    world = two_classes(NodeClassTerms(), NodeClassTerms())
    ((_, order),) = world.launches()
    offer, facts = order.offers[0], world.runtime.state.facts
    error = LaunchError(ICE, instance_type=offer.instance_type, zone=offer.zone, capacity_type="on-demand")
    mark = ("on-demand", offer.instance_type, offer.zone)
    for now in (world.now, world.now + 100_000):
        remember(facts, error, now + 180_000)
    assert mark in unavailable(facts, world.now + 279_999)
    assert mark not in unavailable(facts, world.now + 280_000)


ICE = "InsufficientInstanceCapacity"
IN_GROUP = NodeClassTerms(placement_group="pg-1")


def test_a294_a482_what_a_placement_group_has_no_room_for_is_there_outside_it() -> None:
    world = two_classes(IN_GROUP, NodeClassTerms())
    ((_, order),) = world.launches()
    first = order.offers[0]
    (again,) = refused(world, code=ICE, placement_group="pg-1")
    assert again.node_pool == "default"
    assert {(offer.instance_type, offer.zone) for offer in order.offers} - {
        (offer.instance_type, offer.zone) for offer in again.offers
    } == {(first.instance_type, first.zone)}
    state = world.runtime.state
    assert unavailable_to(state.facts, OTHER.key, world.now) == unavailable(state.facts, world.now) == frozenset()
    (text,) = cluster_status(state, world.now).unavailable
    assert text == f"on-demand|{first.instance_type}|{first.zone}|in pg-1"
    assert re_derived(world.store) == world.store.entries


def test_a212_what_was_refused_outside_counts_inside_a_placement_group_too() -> None:
    world = two_classes(NodeClassTerms(), IN_GROUP)
    (again,) = refused(world, code=ICE)
    facts = world.runtime.state.facts
    assert unavailable_to(facts, OTHER.key, world.now) == frozenset()
    ((_, _, zone),) = unavailable(facts, world.now)
    assert zone == A, "for all"
    assert zones(again) == {A, B}


def test_a295_a_spread_group_that_is_full_in_a_zone_takes_no_type_there() -> None:
    world = two_classes(IN_GROUP, NodeClassTerms())
    (again,) = refused(world, code=ICE, placement_group="pg-1", full=True)
    assert (again.node_pool, zones(again)) == ("default", {B})
    (other,) = refused(world, code=ICE, placement_group="pg-1", full=True)
    assert (other.node_pool, zones(other)) == ("other", {A, B})
    assert avoided(world.runtime.state.facts, world.now + 180_000) == {}
