"""The planner against the reference's golden scenarios, family by family.

Without the large set of scenarios the test is skipped. `pytest -s` prints the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kerf.engine.scheduling.planner import plan
from kerf.replay.scenarios.plan_scenarios import plan_scenario, problem_of, read_catalogues, read_scenarios
from tests.conformance.comparison import ACCEPTED, Verdict, dearer, improved, verdict
from tests.conformance.large_set import ABSENT, LARGE_SET
from tests.support.judges.plans import faults

DONE: dict[str, int] = {
    "workshop": 1,
    "a-resources": 35,
    "b-selectors": 36,
    "c-taints": 36,
    "d-spread": 26,
    "e-affinity": 30,
    "f-nodepools": 35,
    "g-existing": 29,
    "h-ds-ports-volumes": 25,
    "i-mixed": 13,
    "j-offerings": 32,
}
"""Families that are done: at least so many scenarios equal, none worse, none with pods that are not supported."""

ZONES = "S-140: above the luckiest of the reference's runs, which take zones at random"
WHOLE = "S-208: the cheaper plan that effort finds leaves pods unbound; above the luckiest of the reference's runs"
VOLUMES = "S-154: the reference's results leave out zones of bound volumes"
GONE = "S-154: no node for a pod whose Local volume is on a node that is gone"
PORTS = "S-97: the host port of a DaemonSet that is still to come to an existing node is taken"
NODES = "S-70: the limit on nodes is kept within a pass, too"

EXPECTED: dict[str, tuple[Verdict, float | None, str]] = {
    "d-spread-010": (Verdict.DEARER, 3.6, WHOLE),
    "f-nodepools-051": (Verdict.BEYOND, None, NODES),
    "g-existing-001": (Verdict.BEYOND, None, NODES),
    "g-existing-011": (
        Verdict.BEYOND,
        None,
        "S-126: a zone in which the NodePool's limits leave no node to launch keeps no pod waiting, so more "
        "pods of the spread, and fewer others, are placed",
    ),
    "g-existing-014": (Verdict.BEYOND, None, NODES),
    "h-ds-ports-volumes-002": (Verdict.BEYOND, None, VOLUMES),
    "h-ds-ports-volumes-005": (Verdict.BEYOND, None, GONE),
    "h-ds-ports-volumes-014": (Verdict.BEYOND, None, GONE),
    "h-ds-ports-volumes-029": (Verdict.DEARER, 50.0, VOLUMES),
    "h-ds-ports-volumes-050": (Verdict.DEARER, 100.0, VOLUMES),
    "h-ds-ports-volumes-056": (Verdict.BEYOND, None, VOLUMES),
    "h-ds-ports-volumes-059": (Verdict.DEARER, 31.4, VOLUMES),
    "i-mixed-013": (Verdict.DEARER, 3.7, WHOLE),
    "i-mixed-021": (Verdict.DEARER, 3.0, WHOLE),
    "i-mixed-042": (Verdict.BEYOND, None, PORTS),
    "i-mixed-046": (Verdict.DEARER, 1.5, ZONES),
}
"""Scenarios that differ for the worse in one respect, by how many percent the cheaper of the two plans (without effort,
and with it) is dearer where that is it, and why. One that does not differ so any more fails the test, too."""


def verdicts() -> Iterator[tuple[str, str, Verdict, float | None]]:
    """(family, name, verdict, by how many percent it is dearer where that is the verdict) of every scenario."""
    expected: dict[str, Any] = {}
    for line in (LARGE_SET / "results.jsonl").read_bytes().splitlines():
        result = msgspec.json.decode(line)
        expected[result["name"]] = result
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    for scenario in read_scenarios(LARGE_SET / "scenarios.jsonl"):
        planned = plan_scenario(scenario, catalogues, effort=0)
        problem = problem_of(scenario, catalogues)
        wrong = faults(problem, plan(problem))
        reference = expected[planned["name"]]
        found = Verdict.INVALID if wrong else verdict(planned, reference)
        more: float | None = None
        if found is Verdict.DEARER:
            best = plan_scenario(scenario, catalogues, nominate=False)
            found = improved(planned, best, reference)
            more = min(dearer(planned, reference), dearer(best, reference)) if found is Verdict.DEARER else None
        yield planned["family"], planned["name"], found, more


def table(counts: dict[str, Counter[Verdict]]) -> str:
    width = max(map(len, counts))
    head = " " * width + "".join(f"  {column.value:>17}" for column in Verdict)
    rows = [
        f"{family:<{width}}" + "".join(f"  {counts[family][column]:>17}" for column in Verdict)
        for family in sorted(counts)
    ]
    return "\n".join([head, *rows])


@pytest.mark.slow
@pytest.mark.skipif(not LARGE_SET.is_dir(), reason=ABSENT)
def test_families_that_are_done_stay_done() -> None:
    counts: dict[str, Counter[Verdict]] = {}
    worse: dict[str, tuple[Verdict, float | None]] = {}
    for family, name, found, more in verdicts():
        counts.setdefault(family, Counter())[found] += 1
        if found not in ACCEPTED:
            worse[name] = found, more
    print("\n" + table(counts))
    assert worse == {name: (found, more) for name, (found, more, _) in EXPECTED.items()}
    for family, equal in DONE.items():
        assert counts[family][Verdict.EQUAL] >= equal, family
        assert counts[family][Verdict.NOT_YET] == 0, family
