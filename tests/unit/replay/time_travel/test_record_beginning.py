"""What a record or a part of one begins with is known to a read model that folds entries."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.record.observations import Observation
from kerf.engine.state.load import load
from kerf.projections.timeline.event import event_sentence
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.time_travel.record_beginning import state_as_entries
from tests.support.lives import in_service


def test_a_budget_from_before_the_beginning_is_changed_and_not_created() -> None:
    world, budget = in_service(), PodDisruptionBudget("u1", "default", "web", min_available="2")
    world.see(Observation(budget))
    position, timeline = world.store.last_position(), Timeline()
    for entry in state_as_entries(load(world.store).facts, position, world.now):
        timeline.apply(entry)
    world.see(Observation(replace(budget, min_available="1")))
    told = [event_sentence(event) for entry in world.store.scan(position) for event in timeline.apply(entry)]
    assert told == ["PodDisruptionBudget default/web was changed: minAvailable 2 → 1"]
