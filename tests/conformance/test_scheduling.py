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

from kerf.replay.scenarios import plan_scenario, read_catalogues, read_scenarios
from tests.conformance.comparison import ACCEPTED, Verdict, verdict

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"

DONE: dict[str, Counter[Verdict]] = {
    "workshop": Counter({Verdict.EQUAL: 1}),
    "a-resources": Counter({Verdict.EQUAL: 35, Verdict.NO_WORSE: 1}),
    "b-selectors": Counter({Verdict.EQUAL: 36}),
    "c-taints": Counter({Verdict.EQUAL: 36}),
    "f-nodepools": Counter({Verdict.EQUAL: 34, Verdict.NOT_YET: 2}),
    "g-existing": Counter({Verdict.EQUAL: 15, Verdict.NOT_YET: 21}),
    "j-offerings": Counter({Verdict.EQUAL: 24, Verdict.NOT_YET: 12}),
}
"""Families that are done as far as they go without topology and volumes: at least so many equal, at most so many not
supported yet."""


def verdicts() -> Iterator[tuple[str, str, Verdict]]:
    """(family, name, verdict) of every scenario."""
    expected: dict[str, Any] = {}
    for line in (FOLDER / "results.jsonl").read_bytes().splitlines():
        result = msgspec.json.decode(line)
        expected[result["name"]] = result
    catalogues = read_catalogues(FOLDER / "catalogues.json")
    for scenario in read_scenarios(FOLDER / "scenarios.jsonl"):
        planned = plan_scenario(scenario, catalogues)
        yield planned["family"], planned["name"], verdict(planned, expected[planned["name"]])


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
        if found not in ACCEPTED:
            worse.append(f"{name}: {found.value}")
    print("\n" + table(counts))
    assert worse == []
    for family, known in DONE.items():
        assert counts[family][Verdict.EQUAL] >= known[Verdict.EQUAL], family
        assert counts[family][Verdict.NOT_YET] <= known[Verdict.NOT_YET], family
