"""The planner against the reference's golden scenarios, family by family.

The scenarios stand beside the repository (../shared/conformance). Where they are absent, the one test says so and
passes: there is nothing to compare with. `pytest -s` prints the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerf.engine.scheduling.planner import plan
from kerf.replay.scenarios import plan_scenario, problem_of, read_catalogues, read_scenarios
from tests.conformance.comparison import ACCEPTED, Verdict, improved, verdict
from tests.support.judge import faults

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"

DONE: dict[str, int] = {
    "workshop": 1,
    "a-resources": 35,
    "b-selectors": 36,
    "c-taints": 36,
    "d-spread": 26,
    "e-affinity": 30,
    "f-nodepools": 36,
    "g-existing": 32,
    "h-ds-ports-volumes": 26,
    "i-mixed": 16,
    "j-offerings": 32,
}
"""Families that are done: at least so many scenarios equal, none worse, none with pods that are not supported."""

EXPECTED: dict[str, tuple[Verdict, str]] = {
    "g-existing-011": (
        Verdict.BEYOND,
        "S-126: a zone in which the NodePool's limits leave no node to launch keeps no pod waiting, so more "
        "pods of the spread, and fewer others, are placed",
    ),
    **{
        f"h-ds-ports-volumes-{number}": (
            found,
            "S-154: the reference's results leave out zones of bound volumes",
        )
        for number, found in [
            ("002", Verdict.BEYOND),
            ("029", Verdict.DEARER),
            ("041", Verdict.DEARER),
            ("050", Verdict.DEARER),
            ("056", Verdict.BEYOND),
            ("059", Verdict.DEARER),
        ]
    },
    **{
        name: (
            Verdict.DEARER,
            f"S-140: {percent} % above the luckiest of the reference's runs, which take zones at random",
        )
        for name, percent in [
            ("d-spread-033", 1.4),
            ("i-mixed-011", 0.2),
            ("i-mixed-013", 1.5),
            ("i-mixed-021", 3.0),
            ("i-mixed-036", 4.4),
            ("i-mixed-046", 1.5),
            ("i-mixed-058", 9.1),
        ]
    },
    "i-mixed-033": (
        Verdict.DEARER,
        "S-208: 0.1 % above it; the cheaper plan that effort finds leaves more pods unbound",
    ),
    "i-mixed-054": (Verdict.BEYOND, "S-89: the reference's unstable order of claims with as many pods"),
    "i-mixed-059": (Verdict.BEYOND, "S-89: the reference's unstable order of claims with as many pods"),
}
"""Scenarios that differ for the worse in one respect, and why."""


def verdicts() -> Iterator[tuple[str, str, Verdict]]:
    """(family, name, verdict) of every scenario."""
    expected: dict[str, Any] = {}
    for line in (FOLDER / "results.jsonl").read_bytes().splitlines():
        result = msgspec.json.decode(line)
        expected[result["name"]] = result
    catalogues = read_catalogues(FOLDER / "catalogues.json")
    for scenario in read_scenarios(FOLDER / "scenarios.jsonl"):
        planned = plan_scenario(scenario, catalogues, effort=0)
        problem = problem_of(scenario, catalogues)
        wrong = faults(problem, plan(problem))
        found = Verdict.INVALID if wrong else verdict(planned, expected[planned["name"]])
        if found is Verdict.DEARER:
            found = improved(planned, plan_scenario(scenario, catalogues), expected[planned["name"]])
        yield planned["family"], planned["name"], found


def table(counts: dict[str, Counter[Verdict]]) -> str:
    width = max(map(len, counts))
    head = " " * width + "".join(f"  {each.value:>17}" for each in Verdict)
    rows = [
        f"{family:<{width}}" + "".join(f"  {counts[family][each]:>17}" for each in Verdict) for family in sorted(counts)
    ]
    return "\n".join([head, *rows])


def test_families_that_are_done_stay_done(capsys: pytest.CaptureFixture[str]) -> None:
    if not FOLDER.is_dir():
        with capsys.disabled():
            print(f"\nno conformance scenarios beside the repository ({FOLDER.name}/): nothing compared")
        return
    counts: dict[str, Counter[Verdict]] = {}
    worse: list[str] = []
    for family, name, found in verdicts():
        counts.setdefault(family, Counter())[found] += 1
        if found not in ACCEPTED and found is not EXPECTED.get(name, (None, ""))[0]:
            worse.append(f"{name}: {found.value}")
    print("\n" + table(counts))
    assert worse == []
    for family, equal in DONE.items():
        assert counts[family][Verdict.EQUAL] >= equal, family
        assert counts[family][Verdict.NOT_YET] == 0, family
