"""Other settings bring a disruption pass (D-27), also when nothing in the cluster changes."""

from __future__ import annotations

from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Decision, ProposedMovesResult
from tests.support.lives import in_service
from tests.support.records import re_derived
from tests.support.world import World


def passes(world: World) -> int:
    found = (entry.payload for entry in world.store.entries if isinstance(entry.payload, Decision))
    return sum(isinstance(decision.result, ProposedMovesResult) for decision in found)


def test_d27_other_settings_bring_a_pass() -> None:
    """With SpotToSpotConsolidation switched on there may be moves, although nothing in the cluster changes."""
    world = in_service()
    world.after(60_000)
    world.after(60_000)
    before = passes(world)
    world.runtime = world.start()
    world.after(60_000)
    assert passes(world) == before
    world.settings = Settings(spot_to_spot=True)
    world.runtime = world.start()
    world.after(60_000)
    assert passes(world) == before + 1
    assert re_derived(world.store) == world.store.entries
