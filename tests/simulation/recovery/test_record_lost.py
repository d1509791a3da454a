"""The process is killed and its record is lost: a new one adopts what it finds (design, idea 5; L-237, L-238)."""

from __future__ import annotations

from collections import Counter

import pytest

from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.engine.record.claim_events import Adopted
from tests.support.records import re_derived
from tests.support.simulation.run import Run, scale, workshop

STORY = (scale("1m", 5), scale("12m", 14), scale("30m", 0))


def run(*kills: Kill, until: int = 3_600_000, story: tuple[dict[str, object], ...] = STORY) -> Run:
    return Run(workshop(*story), faults=FaultPlan(kills=kills, restart=3_000), until=until, forgets=True)


def intents() -> int:
    return sum(len(e.payload.intents) for e in run().entries("decision.made"))


COUNT = intents()


@pytest.mark.parametrize("point", KillPoint)
@pytest.mark.parametrize("intent", range(1, COUNT + 1))
def test_nothing_is_doubled_leaked_or_left_over(intent: int, point: KillPoint) -> None:
    lost = run(Kill(intent, point))
    assert len(lost.records) == 2
    launched = Counter(i.machine.claim for i in lost.simulation.cloud.instances.values())
    assert set(launched.values()) == {1}, f"more than one instance for a claim: {launched}"
    assert lost.simulation.cloud.alive() == []
    assert lost.simulation.cluster.api.nodes == {}
    assert lost.simulation.cluster.claims == {}
    assert lost.runtime.state.facts.claims == {}
    assert lost.runtime.state.facts.orphans == {}
    assert lost.runtime.state.facts.found == {}
    assert re_derived(lost.memory) == lost.memory.entries


def hourly_price(run: Run) -> float:
    return sum(claim.price for claim in run.runtime.state.facts.claims.values())


@pytest.mark.parametrize("intent", range(1, COUNT, 2))
def test_every_node_is_adopted_and_no_pod_moves(intent: int) -> None:
    """Killed at any point of the scale-up; what runs is as in a run without a death."""
    story = (scale("1m", 5), scale("12m", 14))
    unharmed, lost = run(story=story), run(Kill(intent, KillPoint.AFTER_EFFECT), story=story)
    pods = lost.simulation.cluster.api.pods.values()
    assert Counter(pod.phase for pod in pods) == {"Running": 14}
    assert hourly_price(lost) == pytest.approx(hourly_price(unharmed))
    assert len(lost.simulation.cloud.instances) == len(unharmed.simulation.cloud.instances)
    assert all(node.ready for node in lost.simulation.cluster.api.nodes.values())


def test_a_fleet_in_service_is_adopted_as_it_is() -> None:
    """The record is lost while nothing is under way: no intent follows, and no pod notices."""
    lost = run(Kill(COUNT, KillPoint.BEFORE_EFFECT), story=(scale("1m", 5), scale("12m", 14), scale("50m", 0)))
    assert len(lost.records) == 2
    events = [e.payload for e in lost.entries() if isinstance(e.payload, Adopted)]
    assert events
    assert {event.state for event in events} <= {"initialized", "tainted"}
