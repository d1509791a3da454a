"""What effort makes of the reference's scenarios: never dearer than the first plan, never more left over, and in sum
cheaper. `pytest -s` prints the table (prices in USD per hour)."""

from __future__ import annotations

from collections import defaultdict

import pytest

from kerf.engine.scheduling.improvement.best import best_plan
from kerf.engine.scheduling.planner import plan
from kerf.replay.scenarios import EFFORT, plan_scenario, problem_of, read_catalogues, read_scenarios
from tests.conformance.comparison import left_over
from tests.conformance.test_scheduling import FOLDER
from tests.support.judge import faults

TOLERANCE = 1e-9
COLUMNS = ("scenarios", "first", "price", "bound", "cheaper", "whole")


def test_effort_makes_plans_cheaper_and_nothing_worse(capsys: pytest.CaptureFixture[str]) -> None:
    if not FOLDER.is_dir():
        with capsys.disabled():
            print(f"\nno conformance scenarios beside the repository ({FOLDER.name}/): nothing improved")
        return
    catalogues = read_catalogues(FOLDER / "catalogues.json")
    sums: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(COLUMNS, 0.0))
    worse = []
    for scenario in read_scenarios(FOLDER / "scenarios.jsonl"):
        first = plan_scenario(scenario, catalogues, effort=0)
        best = plan_scenario(scenario, catalogues, effort=EFFORT)
        before, after = (each["summary"]["totalCheapestPrice"] for each in (first, best))
        if after > before + TOLERANCE or left_over(best["result"]) - left_over(first["result"]):
            worse.append(best["name"])
        problem = problem_of(scenario, catalogues)
        if faults(problem, best_plan(problem, EFFORT)) and not faults(problem, plan(problem)):
            worse.append(f"{best['name']}: not valid")
        kerf = best["kerf"]
        if kerf.get("lowerBound", 0.0) > after + TOLERANCE:
            worse.append(f"{best['name']}: cheaper than its bound")
        if first["result"]["newNodeClaims"]:
            row = sums[best["family"]]
            found = (1, before, after, kerf["lowerBound"], after < before - TOLERANCE, not kerf.get("unbound", True))
            for column, value in zip(COLUMNS, found, strict=True):
                row[column] += value
    print("\n" + " " * 20 + "".join(f"{each:>11}" for each in COLUMNS))
    for family, row in sorted(sums.items()):
        print(f"{family:<20}" + "".join(f"{row[each]:>11.6g}" for each in COLUMNS))
    assert worse == []
    total = {each: sum(row[each] for row in sums.values()) for each in COLUMNS}
    assert total["price"] < 0.85 * total["first"]
    assert total["whole"] >= 0.8 * total["scenarios"]
