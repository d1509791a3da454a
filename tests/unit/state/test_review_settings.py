"""Settings that change, and what their digest is made of."""

from __future__ import annotations

import msgspec

from kerf.engine.model.content_digest import deviation
from kerf.engine.model.kubernetes.nodes import Namespace
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Decision, MovesResult
from kerf.engine.record.observations import Observation
from tests.property.test_fold import re_derived
from tests.support.lives import in_service
from tests.support.world import World


def passes(world: World) -> int:
    found = (entry.payload for entry in world.store.entries if isinstance(entry.payload, Decision))
    return sum(isinstance(decision.result, MovesResult) for decision in found)


def test_a_further_setting_changes_no_recorded_digest() -> None:
    """Decisions name the digest of their settings: a new kerf decides old records byte for byte the same."""
    later = msgspec.defstruct("Later", [("gate_of_tomorrow", bool, False)], bases=(Settings,), frozen=True)
    assert deviation(later()) == deviation(Settings())
    assert deviation(later(batch_idle=5, node_repair=True)) == deviation(Settings(node_repair=True, batch_idle=5))
    assert deviation(later(gate_of_tomorrow=True)) != deviation(Settings())


def test_each_value_has_a_digest_of_its_own() -> None:
    made = [
        Settings(),
        Settings(batch_idle=5),
        Settings(batch_max=5),
        Settings(batch_idle=6),
        Settings(node_repair=True),
    ]
    assert len({deviation(settings) for settings in made}) == len(made)


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


def test_s57_a_namespace_with_other_labels_opens_the_window_for_pods_that_wait() -> None:
    world = World()
    world.pending("a")
    world.after(10_000)
    assert not world.runtime.state.facts.batch_opened
    world.see(Observation(Namespace("default", {"team": "blue"})))
    assert world.runtime.state.facts.batch_opened == world.now
    world.after(10_000)
    world.see(Observation(Namespace("default", {"team": "blue"})))
    assert not world.runtime.state.facts.batch_opened
