"""Scenarios like the reference's (`likenesses`) are such as it could have: pods have their own names, all can be
planned, and one seed makes one scenario."""

from __future__ import annotations

import json

import pytest

from kerf.replay.scenarios.plan_scenarios import plan_scenario, read_catalogues, read_scenarios
from tests.conformance.likenesses import MOST_PODS, alike
from tests.conformance.test_scheduling import FOLDER

SEEDS = 20


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no conformance scenarios beside the repository")
def test_scenarios_that_are_like_the_references_can_be_planned() -> None:
    catalogues = read_catalogues(FOLDER / "catalogues.json")
    types = json.loads((FOLDER / "catalogues.json").read_text())["catalogues"]
    scenarios = list(read_scenarios(FOLDER / "scenarios.jsonl"))
    before = json.dumps(scenarios)
    changed = 0
    for seed in range(SEEDS):
        made = alike(scenarios, types, seed)
        names = [pod["metadata"]["name"] for pod in made["pods"]]
        assert len(set(names)) == len(names) <= MOST_PODS
        assert made == alike(scenarios, types, seed)
        assert "error" not in plan_scenario(made, catalogues, effort=0)["result"]
        given = next(each for each in scenarios if each["name"] == made["name"].partition("~")[0])
        changed += made["pods"] != given["pods"]
    assert changed == SEEDS
    assert json.dumps(scenarios) == before
