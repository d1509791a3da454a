"""S-57: a pod whose planned room another pod has taken is planned for again, and not for ever in the same second."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import Observation
from tests.support.lives import in_service
from tests.support.world import Mi, World

BIG = 1500 * Mi  # of which the node that runs five pods takes one more


def squeezed() -> World:
    """`late` is planned onto the only node, and before it is bound there a pod that nobody planned takes the room."""
    world = in_service()
    assert world.pending("late", memory=BIG) == []
    world.after(1_000)
    assert world.launches() == [], "there is room on the node in service"
    taker = Pod("uid-taker", "default", "taker", world.pods["late"].shape, created=world.now, node="n1")
    world.see(Observation(taker))
    return world


def test_s57_a_pod_whose_room_was_taken_gets_another_node_after_ten_seconds() -> None:
    world = squeezed()
    assert not any(isinstance(intent, LaunchInstance) for intent in world.after(8_000))
    world.after(2_000)
    ((_, order),) = world.launches()
    assert order.requests["memory"] >= BIG


def test_s57_a_pod_that_is_not_bound_although_there_is_room_is_looked_at_after_growing_pauses() -> None:
    world = in_service()
    world.pending("slow", memory=BIG)
    due = []
    for _ in range(8):
        at = world.runtime.next_due()
        assert at is not None
        world.after(at - world.now)
        due.append(world.runtime.state.facts.retry_at - world.now)
    passes = [pause for pause in due if pause > 0]
    assert passes[0] == 10_000
    assert passes == sorted(passes)
    assert passes[-1] == 300_000


def test_s51_once_all_are_bound_nothing_is_due() -> None:
    world = in_service()
    world.pending("late", memory=BIG)
    world.after(1_000)
    assert world.runtime.state.facts.retry_at
    world.bind("late", "n1")
    assert not world.runtime.state.facts.retry_at
