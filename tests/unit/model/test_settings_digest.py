"""What the digest of the settings is made of."""

from __future__ import annotations

import msgspec

from kerf.engine.model.content_digest import deviation
from kerf.engine.model.settings import Settings


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
