"""Some clusters mutated at random with every test run; more with `python -m tests.conformance.disruption_mutations`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.engine.disruption import budgets, eligibility
from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import read_catalogues, read_scenarios
from tests.conformance.disruption_mutations import found, mutated, wrong
from tests.conformance.large_set import ABSENT, LARGE_SET
from tests.support.judges.commands import Court
from tests.support.slow import slow

SEEDS = 20
SPOILT = 25
"""Seeds of the tests that break a rule on purpose."""

present = pytest.mark.skipif(not LARGE_SET.is_dir(), reason=ABSENT)


@present
@pytest.mark.parametrize("first", [0, *slow(SEEDS, 2 * SEEDS)])
def test_moves_of_mutated_clusters_keep_every_rule(first: int) -> None:
    assert [(name, faults) for name, faults in found(first, SEEDS) if faults] == []


@present
@pytest.mark.parametrize(
    ("module", "name", "spoilt", "seen"),
    [
        (eligibility, "_held_by_pods", lambda *_: None, "excludes"),
        (eligibility, "WHEN_EMPTY", "", "policy-when-empty excludes"),
        (budgets, "remaining", lambda *_, **__: 100, "nodes of"),
    ],
)
def test_the_judge_sees_a_broken_rule(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, spoilt: object, seen: str
) -> None:
    """The judge sees a broken rule (D-30 (11, 12), D-54, D-51)."""
    monkeypatch.setattr(module, name, spoilt)
    assert any(seen in fault for _, faults in found(1000, SPOILT) for fault in faults)


@present
def test_the_judge_sees_an_answer_that_was_tampered_with() -> None:
    """A price, a place, a reason: each of a scenario whose answer is right as it is."""
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    (scenario,) = (
        read_scenario
        for read_scenario in read_scenarios(LARGE_SET / "consolidation-scenarios.jsonl")
        if read_scenario["name"] == "k-delete-010"
    )
    result = disrupt_scenario(scenario, catalogues)["result"]
    assert Court(scenario, result, catalogues).faults() == []

    def tampered(change: Any) -> str:
        made = msgspec.json.decode(msgspec.json.encode(result))
        change(made["kerf"])
        return "; ".join(Court(scenario, made, catalogues).faults())

    assert "endPrice" in tampered(lambda kerf: kerf.update(endPrice=0.5))
    assert "nowhere to go" in tampered(lambda kerf: kerf["commands"][0]["podsToExistingNodes"][0].update(pods=[]))
    assert "not enough" in tampered(lambda kerf: kerf["commands"][0]["podsToExistingNodes"][0].update(name="node-6"))
    assert "neither goes nor stays" in tampered(lambda kerf: kerf["kept"].pop("node-6"))
    assert "budget, and there is room" in tampered(lambda kerf: kerf["kept"]["node-3"].update(code="budget"))


@present
def test_a_seed_is_one_scenario() -> None:
    scenarios = list(read_scenarios(LARGE_SET / "consolidation-scenarios.jsonl"))
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    assert mutated(scenarios, 7) == mutated(scenarios, 7) != mutated(scenarios, 8)
    assert wrong(mutated(scenarios, 7), catalogues) == []
