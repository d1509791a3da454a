"""Deterministic simulation: random workloads, actions and faults. A failing seed is reproduced by
`chaos(seed)`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.property.test_fold import re_derived
from tests.support.chaos import chaos


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_doubled_leaked_or_left_over(seed: int) -> None:
    run = chaos(seed)
    launched = Counter(i.machine.claim for i in run.simulation.cloud.instances.values())
    assert set(launched.values()) <= {1}, "more than one instance for a claim"
    assert run.simulation.cloud.alive() == [], "instances without work run on"
    assert run.runtime.state.facts.claims == {}
    assert run.runtime.state.facts.intents == {}
    assert run.runtime.state.facts.orphans == {}
    assert re_derived(run.memory) == run.memory.entries


def test_the_same_seed_gives_the_same_record() -> None:
    assert chaos(7).memory.entries == chaos(7).memory.entries
    assert chaos(7).memory.entries != chaos(8).memory.entries
