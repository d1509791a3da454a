"""The window of a provisioning pass (S-55, S-56)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.record.observations import Observation
from tests.support.world import World


def passes(world: World) -> int:
    return [entry.type for entry in world.store.entries].count("decision.made")


def prepared() -> World:
    world = World(batch_enough=0)
    world.prepare()
    return world


def test_s55_it_closes_a_second_after_the_last_pod() -> None:
    world = prepared()
    world.pending("a")
    world.after(999)
    world.pending("b")
    world.after(999)
    assert passes(world) == 0
    world.after(1)
    assert passes(world) == 1
    assert set(world.runtime.state.facts.targets) == {"uid-a", "uid-b"}


def test_s55_and_ten_seconds_after_it_opened_whoever_comes() -> None:
    world = prepared()
    for number in range(11):
        world.pending(f"p{number}")
        world.after(900)
    assert passes(world) == 0, "9.9 s"
    world.pending("last")
    world.after(100)
    assert passes(world) == 1


def test_s55_without_a_pod_there_is_no_window() -> None:
    world = prepared()
    world.after(60_000)
    assert passes(world) == 0
    assert world.runtime.state.facts.batch_opened == 0


def test_s56_a_pod_that_is_seen_again_does_not_extend_it() -> None:
    world = prepared()
    world.pending("a")
    world.after(600)
    world.see(Observation(replace(world.pods["a"], created=world.now)))
    world.after(400)
    assert passes(world) == 1


def test_s56_after_the_pass_it_does_not_open_another() -> None:
    world = prepared()
    world.pending("a")
    world.after(1_000)
    world.see(Observation(replace(world.pods["a"], created=world.now)))
    world.after(2_000)
    assert passes(world) == 1
