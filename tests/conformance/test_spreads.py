"""Spreads over zones survive the optimizer: two small cases that it once put into one zone, and random mixes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from kerf.engine.model.labels import ZONE
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of, read_scenarios
from tests.support.judges.plans import faults
from tests.support.judges.spreads import worse_spreads
from tests.support.scenarios.spread_mixes import spread_mix
from tests.support.slow import slow

SCENARIOS = {scenario["name"]: scenario for scenario in read_scenarios(Path(__file__).with_name("spreads.jsonl"))}
MIXES_PER_TEST = 10
MIXES = [*range(2), *slow(*range(2, 200))]
"""Tens of seeds."""


@pytest.mark.parametrize("nominations", [False, True])
@pytest.mark.parametrize(("name", "zones"), [("2 kind2 n3", [1, 1, 1]), ("8 kind2 n4", [1, 1, 2])])
def test_s36_s126_s138_s140_a_spread_counts_zones_that_have_no_node_yet(
    name: str, zones: list[int], nominations: bool
) -> None:
    asked = problem_of(SCENARIOS[name], Catalogues({}))
    asked = replace(asked, settings=replace(asked.settings, nominations=nominations))
    best = best_plan(asked, EFFORT)
    spread = {pod.uid for pod in asked.pods if asked.shapes[pod.shape].spread}
    found: Counter[str] = Counter()
    for claim in best.claims:
        values = [
            value for requirement in claim.requirements if requirement.key == ZONE for value in requirement.values
        ]
        found[" ".join(values)] += len(spread.intersection(claim.pods))
    assert sorted(pods for pods in found.values() if pods) == zones
    assert faults(asked, best) == []


@pytest.mark.parametrize("nominations", [False, True])
@pytest.mark.parametrize("ten", MIXES)
def test_s36_s126_s138_s140_no_plan_breaks_a_spread_more_than_the_first(ten: int, nominations: bool) -> None:
    for seed in range(ten * MIXES_PER_TEST, (ten + 1) * MIXES_PER_TEST):
        asked = spread_mix(seed, nominations=nominations)
        first, best = best_plan(asked, 0), best_plan(asked, EFFORT)
        assert worse_spreads(asked, first, best) == [], seed
        kinds = {pod.uid: pod.shape for pod in asked.pods}
        before, after = (Counter(map(kinds.__getitem__, planned.placed)) for planned in (first, best))
        assert before <= after, seed
