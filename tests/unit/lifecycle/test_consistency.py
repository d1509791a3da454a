"""A Node that has less than its NodeClaim was launched for (L-241)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.observations import Observation
from kerf.projections.status.nodeclaim import claim_conditions
from tests.support.lives import claim_of, in_service, launched
from tests.support.records import re_derived
from tests.support.world import Mi, World


def said(world: World) -> list[str]:
    decisions = [e.payload for e in world.store.entries if e.type == "decision.made"]
    return [d.result.reason.code for d in decisions if d.decider == "consistency"]


def reports(world: World, memory: int) -> None:
    node: Node = world.runtime.state.facts.nodes["n1"]
    capacity = {"cpu": 2000, "memory": memory, "pods": 29}
    world.see(Observation(replace(node, capacity=capacity)))


def test_l241_less_than_90_per_cent_is_said_once_and_so_is_its_end() -> None:
    world = in_service()
    whole = claim_of(world).capacity["memory"]
    reports(world, whole * 91 // 100)
    assert said(world) == []
    reports(world, whole * 89 // 100)
    reports(world, whole * 88 // 100)
    assert said(world) == ["node-shape-inconsistent"]
    assert claim_of(world).inconsistent == ("memory",)
    reports(world, whole)
    assert said(world) == ["node-shape-inconsistent", "node-shape-consistent"]
    assert claim_of(world).inconsistent == ()
    assert re_derived(world.store) == world.store.entries


def test_l76_the_object_shows_it() -> None:
    world = in_service()

    def shown() -> list[tuple[str, str]]:
        shown = claim_conditions(claim_of(world), world.runtime.state, world.now)
        found = [c for c in shown if c.type == "ConsistentStateFound"]
        return [(c.status, c.reason) for c in found]

    assert shown() == [("True", "ConsistentStateFound")]
    reports(world, 1)
    assert shown() == [("False", "ConsistencyCheckFailed")]
    assert list(world.runtime.moved()) == [claim_of(world).name]


def test_l241_only_resources_that_were_asked_for_count() -> None:
    """The pods of this world ask for memory; nobody asked for CPU."""
    world = in_service()
    node: Node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, capacity={"cpu": 1, "memory": 7577 * Mi, "pods": 29})))
    assert said(world) == []


def test_l241_not_before_it_is_in_service() -> None:
    world = launched()
    world.node("n1", claim_of(world).provider_id)
    reports(world, 1)
    assert said(world) == []
