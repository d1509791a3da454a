"""One writer, and what a new one finds (design, idea 4)."""

from __future__ import annotations

import pytest

from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.errors import EpochRefused
from kerf.engine.record.observations import LaunchAnswered, Observation
from kerf.engine.runtime.carry_out import reconcile
from kerf.engine.runtime.react import UnendingTurn
from tests.support.lives import asked, claim_of, types
from tests.support.world import World


def test_taking_office_raises_the_epoch_and_fences_the_older_writer() -> None:
    world = World()
    older = world.runtime
    world.runtime = world.start()
    world.prepare()
    assert world.runtime.state.facts.epoch == 2
    with pytest.raises(EpochRefused) as caught:
        older.turn([Observation(LaunchAnswered("1.0", "x"))], world.now)
    assert caught.value.code == "KERF103"
    assert not older.ready


def test_the_lease_may_demand_a_higher_epoch() -> None:
    from kerf.engine.runtime.runtime import Runtime

    world = World()
    runtime = Runtime(
        world.store, holder="b", settings=world.settings, record="x", engine="test", now=world.now, epoch=41
    )
    assert runtime.state.facts.epoch == 42
    assert runtime.record == "record-1"


def test_a_new_writer_finds_the_intents_without_an_outcome() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.runtime = world.start()
    assert world.runtime.unanswered() == [(ref, order)]
    assert world.see() == []


class ScriptedCloud:
    """Has started an instance for every claim, or for none."""

    def __init__(self, found: bool) -> None:
        self.found = found
        self.calls: list[str] = []

    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        self.calls.append("find")
        if not self.found:
            return None
        return LaunchAnswered(intent, order.claim, instance="i-1", provider_id="aws:///us-west-2a/i-1", adopted=True,
                              instance_type="m5.large", zone="us-west-2a", capacity_type="on-demand")  # fmt: skip

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        self.calls.append("launch " + token)
        return LaunchAnswered(intent, order.claim, kind="insufficient-capacity")


@pytest.mark.parametrize("found", [True, False])
def test_after_a_crash_it_looks_first_and_repeats_only_what_did_not_happen(found: bool) -> None:
    world = asked()
    world.runtime = world.start()
    ((ref, order),) = world.runtime.unanswered()
    cloud = ScriptedCloud(found)
    token = world.runtime.token(ref)
    world.see(reconcile(ref, order, token=token, cluster=None, cloud=cloud))  # type: ignore[arg-type]
    assert cloud.calls == (["find"] if found else ["find", "launch " + token])
    if found:
        assert claim_of(world).instance == "i-1"
    else:
        assert types(world)[-1] == "claim.launch-failed"


def test_after_a_fault_of_its_own_the_runtime_does_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that fails half way leaves a state that nothing may build on: a new process starts from the record."""
    world = asked()
    stored = len(world.store.entries)

    def fail(draft: object) -> None:
        raise UnendingTurn("for the test")

    monkeypatch.setattr("kerf.engine.runtime.runtime.react", fail)
    with pytest.raises(UnendingTurn):
        world.pending("late")
    monkeypatch.undo()
    with pytest.raises(UnendingTurn):
        world.after(1_000)
    assert not world.runtime.ready
    assert len(world.store.entries) == stored
    world.runtime = world.start()
    assert world.runtime.ready
