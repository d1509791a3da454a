"""The process is killed between any intent and its outcome, at every such point (design, idea 4)."""

from __future__ import annotations

from collections import Counter

import pytest

from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from tests.support.records import re_derived
from tests.support.simulation.run import Run, scale, workshop

STORY = (scale("1m", 5), {"at": "10m", "action": "interrupt", "capacityType": "spot"}, scale("20m", 0))


def run(faults: FaultPlan | None = None) -> Run:
    return Run(workshop(*STORY, capacity_type="spot"), faults=faults)


def intents() -> int:
    """How many intents the story has without a fault."""
    return sum(len(e.payload.intents) for e in run().entries("decision.made"))


COUNT = intents()


@pytest.mark.parametrize("point", KillPoint)
@pytest.mark.parametrize("intent", range(1, COUNT + 1))
def test_killed_at_every_point_nothing_is_doubled_or_lost(intent: int, point: KillPoint) -> None:
    killed = run(FaultPlan(kills=(Kill(intent, point),)))
    assert killed.driver.deaths == 1
    _ends_like_the_unharmed(killed)


@pytest.mark.parametrize("intent", range(1, COUNT, 3))
def test_killed_again_and_again(intent: int) -> None:
    points = list(KillPoint)
    kills = tuple(Kill(i, points[i % 3]) for i in range(intent, COUNT + 1))
    killed = run(FaultPlan(kills=kills, restart=3_000))
    assert killed.driver.deaths > 1
    _ends_like_the_unharmed(killed)


def _ends_like_the_unharmed(killed: Run) -> None:
    """No double launch, no leaked instance, nothing left over, and the record derives itself again."""
    launched = Counter(i.machine.claim for i in killed.simulation.cloud.instances.values())
    assert set(launched.values()) == {1}, f"more than one instance for a claim: {launched}"
    assert set(launched) == {e.payload.claim for e in killed.entries("claim.launched")}
    assert killed.simulation.cloud.alive() == []
    assert killed.runtime.state.facts.claims == {}
    assert killed.runtime.state.facts.intents == {}
    assert len(killed.entries("claim.terminated")) == len(launched)
    assert re_derived(killed.memory) == killed.memory.entries
