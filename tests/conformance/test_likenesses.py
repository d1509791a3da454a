"""Scenarios like the reference's (`likenesses`) are such as it could have: pods have their own names, all can be
planned, and one seed makes one scenario."""

from __future__ import annotations

import json

import pytest

from kerf.replay.scenarios.plan_scenarios import plan_scenario, read_catalogues, read_scenarios
from tests.conformance.large_set import ABSENT, LARGE_SET
from tests.conformance.likenesses import MOST_PODS, alike

SEEDS = 20


@pytest.mark.skipif(not LARGE_SET.is_dir(), reason=ABSENT)
def test_scenarios_that_are_like_the_references_can_be_planned() -> None:
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    types = json.loads((LARGE_SET / "catalogues.json").read_text())["catalogues"]
    scenarios = list(read_scenarios(LARGE_SET / "scenarios.jsonl"))
    before = json.dumps(scenarios)
    changed = 0
    for seed in range(SEEDS):
        made = alike(scenarios, types, seed)
        names = [pod["metadata"]["name"] for pod in made["pods"]]
        assert len(set(names)) == len(names) <= MOST_PODS
        assert made == alike(scenarios, types, seed)
        assert "error" not in plan_scenario(made, catalogues, effort=0)["result"]
        given = next(scenario for scenario in scenarios if scenario["name"] == made["name"].partition("~")[0])
        changed += made["pods"] != given["pods"]
    assert changed == SEEDS
    assert json.dumps(scenarios) == before
