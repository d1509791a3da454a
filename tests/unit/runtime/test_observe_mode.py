"""Observe mode: NodeClaims follow the objects that a Karpenter writes, and what kerf decides has no intents."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, MoveStepResult, ProvisionResult
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from tests.support.lives import claim_of
from tests.support.manifests.nodeclaim_objects import claim
from tests.support.records import re_derived
from tests.support.world import START, World
from tests.support.worlds.observe_mode import in_use, shown, watching, with_node


def events(world: World) -> list[str]:
    return [type(e.payload).__name__ for e in world.store.entries if e.stream.startswith("nodeclaim/")]


def decisions(world: World) -> list[Decision]:
    return [e.payload for e in world.store.entries if isinstance(e.payload, Decision)]


def test_a_plan_is_recorded_and_nothing_comes_of_it() -> None:
    world = watching()
    world.pending("a", "b")
    assert world.after(1_000) == []
    (plan,) = [d.result for d in decisions(world) if isinstance(d.result, ProvisionResult)]
    assert [node_claim.pods for node_claim in plan.claims] == [("uid-a", "uid-b")]
    assert world.runtime.state.facts.claims == {}
    assert all(not decision.intents for decision in decisions(world))


def test_claims_go_through_their_states_as_their_objects_show() -> None:
    world = watching()
    shown(world, claim(0))
    assert events(world) == [], "nothing is launched yet"
    shown(world, claim(1))
    with_node(world)
    shown(world, claim(2))
    shown(world, claim(3))
    assert events(world) == ["Adopted", "Registered", "Initialized"]
    assert claim_of(world).price == 0.096
    drifting = (*claim(3).conditions, Condition("DisruptionReason", "True", "Drifted"))
    shown(world, claim(3, conditions=drifting))
    assert (claim_of(world).state, claim_of(world).why) == ("tainted", "drifted")
    shown(world, claim(3))
    assert claim_of(world).state == "initialized", "Karpenter has changed its mind (D-118)"
    shown(world, claim(3, conditions=drifting, deleting=START))
    world.see(Observation(ObjectGone("nodeclaim", "default-abcde")))
    assert events(world)[3:] == ["Tainted", "Untainted", "Tainted", "Terminated"]
    assert world.runtime.state.facts.claims == {}


@pytest.mark.parametrize(("changes", "reason"), [({}, "deleted"), ({"expire_after": 60_000}, "expired")])
def test_a_deletion_without_a_reason_is_a_users_or_an_expiration(changes: dict[str, object], reason: str) -> None:
    world = with_node(watching())
    shown(world, claim(3))
    shown(world, claim(3, deleting=START, **changes))
    assert claim_of(world).why == reason


def test_all_within_one_turn_keeps_its_reason() -> None:
    world = with_node(watching())
    shown(world, claim(3))
    going = claim(3, conditions=(*claim(3).conditions, Condition("DisruptionReason", "True", "Empty")), deleting=START)
    world.see(Observation(going), Observation(ObjectGone("nodeclaim", "default-abcde")))
    assert events(world) == ["Adopted", "Tainted", "Terminated"]
    assert [e.payload.why for e in world.store.entries if isinstance(e.payload, ev.Tainted)] == ["empty"]


def test_a_claim_that_goes_without_a_word_has_vanished() -> None:
    world = with_node(watching())
    shown(world, claim(3))
    world.see(Observation(ObjectGone("nodeclaim", "default-abcde")))
    assert events(world) == ["Adopted", "InstanceVanished"]


def test_what_karpenter_makes_meanwhile_is_not_in_the_picture_that_kerf_plans_from() -> None:
    world = watching()
    world.pending("a", "b")
    world.now += 500
    shown(world, claim(1))
    assert world.after(500) == []
    (plan, *_) = [d.result for d in decisions(world) if isinstance(d.result, ProvisionResult)]
    assert len(plan.claims) == 1
    assert not plan.placements
    assert events(world) == ["Adopted"], "after the plan it is taken in"
    world.after(1_000)
    last = [d.result for d in decisions(world) if isinstance(d.result, ProvisionResult)][-1]
    assert not last.claims
    assert [placement.claim for placement in last.placements] == ["default-abcde"]


def test_a_move_that_would_start_is_over_with_that() -> None:
    world = watching(consolidate_after=0)
    in_use(world)
    world.gone("a")
    world.gone("b")
    for _ in range(6):
        assert world.after(10_000) == []
    (move,) = [d.result for d in decisions(world) if isinstance(d.result, MoveStepResult)]
    assert (move.step, move.reason.code) == ("observed", "empty")
    assert claim_of(world).state == "initialized"
    assert world.runtime.state.facts.moves == {}


def test_an_expired_claim_is_judged_once_and_stays() -> None:
    world = with_node(watching())
    shown(world, claim(3, expire_after=180_000))
    for _ in range(3):
        assert world.after(60_000) == []
        assert world.runtime.next_due() != world.now
    verdicts = [v for d in decisions(world) if d.decider == "disrupt" for v in d.result.verdicts]  # type: ignore[union-attr]
    assert [(verdict.method, verdict.action) for verdict in verdicts] == [("expired", "remove")]
    assert claim_of(world).state == "initialized"


def test_it_is_re_derived_from_the_record_and_from_a_snapshot() -> None:
    world = watching(consolidate_after=0)
    in_use(world)
    world.gone("a")
    world.after(30_000)
    world.pending("c")
    world.after(5_000)
    assert re_derived(world.store) == world.store.entries
    _, digest = snapshot.encode(world.runtime.state)
    assert snapshot.digest(load(world.store)) == digest


def test_a_node_that_somebody_deletes_is_no_reason_of_kerfs() -> None:
    world = watching()
    in_use(world)
    node: Node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, deleting=world.now)))
    shown(world, claim(3, deleting=START))
    world.see(Observation(ObjectGone("nodeclaim", "default-abcde")))
    assert events(world)[-2:] == ["Tainted", "Terminated"]
    assert not [event for event in events(world) if event == ev.DrainStarted.__name__]
