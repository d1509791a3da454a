"""Kubernetes Events from the record (L-436 to L-462, EV-1 to EV-25)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.reasons import Reason
from kerf.engine.record.claim_events import PodEvicted
from kerf.engine.record.decisions import Decision, EvictPod, LifecycleResult
from kerf.engine.record.observations import (
    EffectAnswered,
    InterruptionSeen,
    LaunchAnswered,
    NodeClaimDeletionSeen,
    Observation,
)
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import NORMAL, WARNING, KubernetesEvent
from kerf.projections.kubernetes_events.events_by_code import BLOCKS_ANY_DISRUPTION, BLOCKS_CONSOLIDATION
from kerf.projections.prose.reasons import sentence
from tests.support.events import told
from tests.support.lives import decide, half_empty, show_taint
from tests.support.simulation.run import HOUR, Run, scale, workshop
from tests.support.world import World


def reasons(found: list[KubernetesEvent]) -> set[tuple[str, str, str]]:
    return {(event.about.kind, event.type, event.reason) for event in found}


def launched() -> World:
    world = World()
    world.prepare()
    world.pending("a", "b")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    return world


def test_planned_pods_are_nominated() -> None:
    """Planned pods are nominated (L-437)."""
    world = launched()
    found = told(world)
    nominated = [event for event in found if event.reason == "Nominated"]
    (claim,) = world.runtime.state.facts.claims
    assert {(event.about.kind, event.about.name) for event in nominated} == {("Pod", "a"), ("Pod", "b")}
    assert {event.message for event in nominated} == {f"Pod should schedule on: nodeclaim/{claim}"}
    assert {event.limit for event in nominated} == {"nominated"}


def test_ev12_s173_a_pod_is_told_no_node_that_has_not_joined() -> None:
    """A plan calls it like its claim."""
    world = launched()
    since = world.runtime.state.facts.position
    world.pending("c")
    world.after(1_000)
    (claim,) = world.runtime.state.facts.claims
    nominated = [event for event in told(world, since) if event.reason == "Nominated" and event.about.name == "c"]
    assert [event.message for event in nominated] == [f"Pod should schedule on: nodeclaim/{claim}"]


def test_a_pod_without_a_place_is_told_why() -> None:
    """L-436: once in five minutes, by uid."""
    world = World()
    world.prepare()
    world.pending("big", memory=1 << 50)
    world.after(1_000)
    (event,) = [failed for failed in told(world) if failed.reason == "FailedScheduling"]
    assert (event.type, event.window, event.about.name) == (WARNING, 300_000, "big")
    assert event.key == (event.about.uid,)
    assert "memory" in event.message
    assert "default" in event.message


def test_a_launch_without_capacity_is_told_of_the_claim() -> None:
    """L-454, EV-22: cut to 300 characters."""
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    message = "no m5.large {here} " * 50
    answer = LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message=message)
    world.see(Observation(answer))
    (event,) = [unlaunched for unlaunched in told(world) if unlaunched.reason == "InsufficientCapacityError"]
    assert (event.about.kind, event.about.name, len(event.message)) == ("NodeClaim", order.claim, 300)


def test_an_interruption_is_told_of_node_and_claim() -> None:
    """An interruption is told of node and claim (L-461)."""
    world = launched()
    since = world.runtime.state.facts.position
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    found = told(world, since)
    assert ("NodeClaim", WARNING, "SpotInterrupted") in reasons(found)
    (going,) = [event for event in found if event.reason == "TerminatingOnInterruption"]
    assert (going.about.kind, going.type) == ("NodeClaim", WARNING)
    assert going.message == "Interruption triggered termination for the NodeClaim"


def test_a_362_the_termination_is_told_once_however_often_it_is_interrupted() -> None:
    world = launched()
    since = world.runtime.state.facts.position
    for number, kind in enumerate(("spot_interrupted", "rebalance_recommendation", "instance_stopped")):
        world.see(Observation(InterruptionSeen(f"m-{number}", kind, "i-1")))
    named = [event.reason for event in told(world, since) if event.about.kind == "NodeClaim"]
    assert named.count("TerminatingOnInterruption") == 1
    assert {"SpotInterrupted", "SpotRebalanceRecommendation", "InstanceStopping"} <= set(named)


@pytest.mark.parametrize("drains", [True, False])
def test_a_362_what_goes_already_is_not_told_to_go_for_an_interruption(drains: bool) -> None:
    """It is told of the interruption itself. A node that waits for its replacement does not go yet: both."""
    world = half_empty()
    decide(world)
    if drains:
        world.see(Observation(NodeClaimDeletionSeen(next(iter(world.runtime.state.facts.claims)), "kubectl")))
        world.answer_all()
        show_taint(world)
        world.after(1_000)
    since = world.runtime.state.facts.position
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    named = {event.reason for event in told(world, since) if event.about.kind == "Node"}
    assert "SpotInterrupted" in named
    assert ("TerminatingOnInterruption" in named) != drains


def test_a_356_advice_to_rebalance_ends_nothing() -> None:
    world = launched()
    since = world.runtime.state.facts.position
    world.see(Observation(InterruptionSeen("m-1", "rebalance_recommendation", "i-1")))
    assert "TerminatingOnInterruption" not in {event.reason for event in told(world, since)}


def test_what_goes_is_told_with_why() -> None:
    """EV-5, EV-14: Node and NodeClaim, by uid and reason; the pods that are evicted."""
    seen: list[KubernetesEvent] = []

    class Watched(Run):
        def _office(self, now: int):  # type: ignore[no-untyped-def]
            runtime = super()._office(now)
            events, turn = DecisionEvents(runtime.state), runtime.turn

            def told_turn(observations, now):  # type: ignore[no-untyped-def]
                done = turn(observations, now)
                seen.extend(event for entry in runtime.new_entries for event in events.apply(entry))
                return done

            runtime.turn = told_turn  # type: ignore[method-assign]
            return runtime

    Watched(workshop(scale("+1m", 5), scale("+20m", 0)), until=HOUR)
    found = reasons(seen)
    assert {("Node", NORMAL, "DisruptionTerminating"), ("NodeClaim", NORMAL, "DisruptionTerminating")} <= found
    assert {
        event.message for event in seen if event.reason == "DisruptionTerminating" and event.about.kind == "Node"
    } == {"Disrupting Node: Empty"}


def test_the_codes_that_block_are_codes() -> None:
    """A code that prose does not know is one that nothing says."""
    assert not BLOCKS_ANY_DISRUPTION & BLOCKS_CONSOLIDATION
    for code in sorted(BLOCKS_ANY_DISRUPTION | BLOCKS_CONSOLIDATION):
        assert sentence(Reason(code)) != code


def test_an_eviction_is_told_by_namespace_and_name() -> None:
    """EV-14; L-435's quirk that two pods of one name share their events is none here."""
    world = launched()
    (claim,) = world.runtime.state.facts.claims
    payload = PodEvicted(claim, "uid-a", "default/a")
    entry = replace(world.store.entries[-1], payload=payload)
    (event,) = DecisionEvents(world.runtime.state).apply(entry)
    assert (event.reason, event.about.name, event.key) == ("Evicted", "a", ("default", "a"))


def test_a_refused_eviction_is_told_of_the_node() -> None:
    """A refused eviction is told of the node (EV-16)."""
    world = launched()
    world.node("n1", "aws:///us-west-2a/i-1")
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    intent = EvictPod("c", "n1", "uid-a", "default", "a")
    decision = Decision("drain", 1, 1, 1, "", LifecycleResult("c", Reason("evict")), (intent,))
    assert not events.apply(replace(last, position=7, payload=decision))
    answer = EffectAnswered("7.0", ok=False, code="429", message="Cannot evict pod {a}: its budget")
    (event,) = events.apply(replace(last, payload=answer))
    assert (event.about.kind, event.type, event.reason) == ("Node", WARNING, "FailedDraining")
    assert "default/a" in event.message
    assert "pod {a}" in event.message
    assert not events.apply(replace(last, payload=answer)), "an answer is told once"
