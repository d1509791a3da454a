"""S-40, S-55, S-56 in a burst: many pods are planned for before the scheduler has come to each of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.settings import Settings
from kerf.engine.record.claim_events import Requested
from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.observations import LaunchAnswered, LaunchError, Observation
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.engine.state.pods.bursts import untried_pods
from kerf.engine.state.provisioning_window import window_closes_at
from kerf.engine.state.state import Facts
from tests.support.records import re_derived
from tests.support.world import START, Mi, World

ENOUGH = 4


class Burst(World):
    """`refuse` has the scheduler say of pods that came that they fit nowhere."""

    def __init__(self, **settings: object) -> None:
        super().__init__(None, **{"batch_enough": ENOUGH, **settings})
        self.prepare()

    def come(self, *names: str, priority: int = 0, created: int = 0) -> None:
        shape = PodShape(requests={"memory": 1024 * Mi}, priority=priority)
        digest, _ = content(shape)
        for name in names:
            pod = Pod(f"uid-{name}", "default", name, digest, created=created or self.now, untried=True)
            self.pods[name] = pod
            self.see(Observation(pod, {digest: shape}))

    def refuse(self, *names: str) -> None:
        for name in names:
            self.pods[name] = replace(self.pods[name], unschedulable=True, untried=False)
            self.see(Observation(self.pods[name]))

    def planned(self) -> list[str]:
        """The pods of all claims asked for, by name."""
        asked = [e.payload for e in self.store.entries if isinstance(e.payload, Requested)]
        return sorted(uid.removeprefix("uid-") for claim in asked for uid in claim.pods)

    def passes(self) -> int:
        decisions = (e.payload for e in self.store.entries if isinstance(e.payload, Decision))
        return sum(isinstance(decision.result, ProvisionResult) for decision in decisions)


def burst(**settings: object) -> Burst:
    """Four pods of which the scheduler has refused one; the window is over."""
    world = Burst(**settings)
    world.come("a", "b", "c", "d")
    world.refuse("a")
    world.after(1_000)
    return world


def test_all_are_planned_for_when_the_scheduler_has_refused_one() -> None:
    assert burst().planned() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("settings", [{"batch_enough": 0}, {"batch_enough": 5}, {"observe": True}])
def test_without_a_burst_only_what_was_refused_is_planned_for(settings: dict[str, object]) -> None:
    """S-40. In observe mode Karpenter's batches are looked at, and it knows no bursts."""
    world = burst(**settings)
    (made,) = (e.payload.result for e in world.store.entries
               if isinstance(e.payload, Decision) and isinstance(e.payload.result, ProvisionResult))  # fmt: skip
    assert [uid for claim in made.claims for uid in claim.pods] == ["uid-a"]


def test_nobody_is_planned_for_before_the_scheduler_has_refused_somebody() -> None:
    world = Burst()
    world.come("a", "b", "c", "d", "e")
    world.after(20_000)
    assert world.passes() == 0


def test_further_refusals_do_not_keep_the_window_open() -> None:
    """S-55 restarts the pause with every pod that the scheduler comes to; a burst is over when no more pods come."""
    world = Burst()
    world.come("a", "b", "c", "d")
    for name, wait in (("a", 0), ("b", 600), ("c", 300)):
        world.after(wait)
        world.refuse(name)
    world.after(100)
    assert world.planned() == ["a", "b", "c", "d"]


def test_pods_that_go_on_coming_are_waited_for_a_little() -> None:
    world = Burst()
    world.come("a", "b", "c", "d")
    world.refuse("a")
    world.after(900)
    world.come("e")
    world.after(100)
    assert world.passes() == 0
    world.after(150)
    assert world.planned() == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(("lasted", "pause"), [(300, 100), (1_200, 120), (2_000, 200), (9_000, 250)])
def test_the_faster_they_come_the_sooner_no_more_are_waited_for(lasted: int, pause: int) -> None:
    """S-55. 500 pods within some time, and what is waited after the last one."""
    facts = Facts(settings=Settings(batch_enough=ENOUGH), batch_opened=START, arrived_at=START + lasted)
    facts.arrived = {f"uid-{number}": None for number in range(500)}
    assert window_closes_at(facts) == START + max(1_000, lasted + pause)


def test_a_refusal_of_what_is_planned_for_opens_no_window() -> None:
    """A refusal of what is planned for opens no window (S-56)."""
    world = burst()
    world.refuse("b", "c", "d")
    world.after(20_000)
    assert world.passes() == 1


def test_the_rest_of_a_burst_is_a_burst_again() -> None:
    """The scheduler is still at the pods before; a window opens when enough have come."""
    world = burst()
    world.come("e", "f", "g", "h")
    world.after(1_000)
    assert world.passes() == 2
    assert sorted(world.runtime.state.facts.targets) == [f"uid-{name}" for name in "abcdefgh"]


def test_what_the_scheduler_may_be_holding_back_is_left_out() -> None:
    """A pod that was there long before the burst, and of which it still says nothing."""
    world = Burst()
    world.come("held")
    world.after(15_000)
    world.come("a", "b", "c", "d")
    world.refuse("a")
    world.after(1_000)
    assert world.planned() == ["a", "b", "c", "d"]


def test_what_may_help_itself_by_preemption_is_left_to_the_scheduler() -> None:
    """S-40 leaves nominated pods alone."""
    world = Burst()
    world.come("a", "b", "c")
    world.come("high", priority=10)
    world.refuse("a")
    world.after(1_000)
    assert world.planned() == ["a", "b", "c"]


def test_pods_that_are_bound_meanwhile_are_no_burst() -> None:
    world = Burst()
    world.come("a", "b", "c", "d")
    world.bind("b", "somewhere")
    world.refuse("a")
    world.after(1_000)
    assert world.planned() == ["a"]


@pytest.mark.parametrize("steps", range(4))
def test_a_restart_changes_nothing(steps: int) -> None:
    world = Burst()
    world.come("a", "b", "c", "d")
    world.refuse("a")
    for _ in range(steps):
        world.after(500)
    state = world.runtime.state
    data, digest = snapshot.encode(state)
    again = snapshot.decode(data, state.indexes.blobs)
    folded = load(world.store)
    for other in (again, folded):
        assert snapshot.digest(other) == digest
        assert sorted(other.indexes.pending) == sorted(state.indexes.pending)
        assert untried_pods(other, START + 2_000) == untried_pods(state, START + 2_000)


def test_untried_pods_whose_launch_failed_wait_for_the_next_plan_after_a_restart_too() -> None:
    """L-152. The scheduler has refused one of them only; by a snapshot in between the next plan is the same."""
    world = burst()
    ((ref, order),) = world.launches()
    offer = order.offers[0]
    lacking = LaunchError("InsufficientInstanceCapacity", "", offer.instance_type, offer.zone, order.capacity_type)
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=(lacking,))))
    state = world.runtime.state
    again = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    assert sorted(again.indexes.pending) == sorted(state.indexes.pending) == [f"uid-{name}" for name in "abcd"]
    assert again.indexes.waiting_for == state.indexes.waiting_for == {}
    world.after(1_000)
    assert world.planned() == sorted([*"abcd"] * 2)
    assert re_derived(world.store) == world.store.entries
