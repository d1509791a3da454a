"""L-139: five letters are 14 million names, so among some thousand claims two are likely to come to the same one."""

from __future__ import annotations

import pytest

from kerf.engine.scheduling import provision
from tests.support.lives import asked, claim_of, types
from tests.support.world import World


def test_claims_of_one_plan_have_different_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "_ALPHABET", "bc")  # 32 names
    world = World()
    world.prepare()
    world.pending(*(f"p{i}" for i in range(20)), memory=14_000 * 2**20)
    world.after(1_000)
    world.pending(*(f"q{i}" for i in range(10)), memory=14_000 * 2**20)
    world.after(1_000)
    assert len(world.runtime.state.facts.claims) == 30


def test_a_name_is_never_given_twice_in_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "_name", lambda pool, state, index, attempt: f"{pool}-{attempt}")
    world = asked()
    assert claim_of(world).name == "default-0"
    world.after(300_000)
    world.after(1_000)
    assert types(world).count("claim.launch-timed-out") == 1
    assert claim_of(world).name == "default-1"
