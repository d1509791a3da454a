"""Disruption against the reference's golden clusters, family by family (docs/plan.md, section 3).

Held for every scenario: candidates, costs and budgets equal; the fleet after kerf's moves costs no more than after the
reference's command, of whichever method; and kerf touches nothing that the reference excludes. Without the
large set of scenarios the test is skipped. `pytest -s` prints the table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kerf.engine.disruption.consolidation.balanced_policy import price_of
from kerf.replay.scenarios.disruption_scenarios import cluster_of, disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import read_catalogues, read_scenarios
from tests.conformance.large_set import ABSENT, LARGE_SET

METHODS = ("emptiness", "multiNode", "singleNode")
TOLERANCE = 1e-9

COLUMNS = ("scenarios", "candidates", "allowed", "commands", "decisions", "same end", "cheaper", "dearer")

DEARER: dict[str, str] = {}
"""Scenarios after which kerf's fleet costs more, and why."""


def candidates(method: dict[str, Any]) -> list[tuple[str, float, float]]:
    return sorted(
        (candidate["name"], round(candidate["price"], 9), round(candidate["disruptionCost"], 9))
        for candidate in method["candidates"]
    )


def commands(method: dict[str, Any]) -> list[Any]:
    """What has to be equal of a method's commands."""
    return [
        (
            command["decision"],
            command["reason"],
            command["candidates"],
            [(new["nodePool"], new["pods"], new["instanceTypes"], new["requirements"], new["requests"])
             for new in command.get("replacements", [])],
            command.get("podsToExistingNodes", []),
            round(command["estimatedSavings"], 9),
        )
        for command in method["commands"]
    ]  # fmt: skip


def brief(method: dict[str, Any]) -> list[str]:
    """A method's commands as the variants of a result have them."""
    return [
        f"{command['decision']} [{','.join(command['candidates'])}]"
        + "".join(f" -> {new['cheapestInstanceType']}" for new in command.get("replacements", []))
        for command in method["commands"]
    ]


def savings(result: dict[str, Any]) -> float:
    """The most that any method's command saves, USD per hour."""
    return max((command["estimatedSavings"] for name in METHODS for command in result[name]["commands"]), default=0.0)


def compared() -> Iterator[tuple[str, str, Counter[str], list[str]]]:
    """(family, name, what holds, what must not be) of every scenario."""
    lines = (LARGE_SET / "consolidation-results.jsonl").read_bytes().splitlines()
    expected = {line["name"]: line for line in map(msgspec.json.decode, lines)}
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    for scenario in read_scenarios(LARGE_SET / "consolidation-scenarios.jsonl"):
        ours, theirs = disrupt_scenario(scenario, catalogues), expected[scenario["name"]]
        cluster = cluster_of(scenario, catalogues)
        price = math.fsum(price_of(node, cluster.types()) for node in cluster.nodes if not node.marked)
        yield ours["family"], ours["name"], *_judged(ours["result"], theirs, price)


def _judged(ours: dict[str, Any], theirs: dict[str, Any], price: float) -> tuple[Counter[str], list[str]]:
    holds, faults = Counter(["scenarios"]), []
    wanted = theirs["result"]
    for what, view in (("candidates", candidates), ("allowed", lambda each: each["allowedDisruptions"])):
        unequal = [name for name in METHODS if view(ours[name]) != view(wanted[name])]
        holds[what] += not unequal
        faults += [f"{name}: other {what}" for name in unequal]
    holds["commands"] += all(commands(ours[name]) == commands(wanted[name]) for name in METHODS)
    runs = [{name: brief(wanted[name]) for name in METHODS}, *theirs.get("variants", [])]
    holds["decisions"] += all(any(brief(ours[name]) == run[name] for run in runs) for name in METHODS)
    known = {candidate["name"] for name in METHODS for candidate in wanted[name]["candidates"]}
    touched = {name for command in ours["kerf"]["commands"] for name in command["candidates"]}
    faults += [f"touches {name}, which the reference excludes" for name in sorted(touched - known)]
    end, bound = ours["kerf"]["endPrice"], price - savings(wanted)
    holds["same end"] += abs(end - bound) <= TOLERANCE
    holds["cheaper"] += end < bound - TOLERANCE
    holds["dearer"] += end > bound + TOLERANCE
    return holds, faults


def table(counts: dict[str, Counter[str]]) -> str:
    total: Counter[str] = sum(counts.values(), Counter())
    rows = {**dict(sorted(counts.items())), "all": total}
    width = max(map(len, rows))
    head = " " * width + "".join(f"  {column:>11}" for column in COLUMNS)
    return "\n".join(
        [head, *(f"{name:<{width}}" + "".join(f"  {row[c]:>11}" for c in COLUMNS) for name, row in rows.items())]
    )


@pytest.mark.skipif(not LARGE_SET.is_dir(), reason=ABSENT)
def test_every_cluster_ends_no_dearer_than_with_the_reference() -> None:
    counts: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for family, name, holds, faults in compared():
        counts.setdefault(family, Counter()).update(holds)
        wrong += [f"{name}: {fault}" for fault in faults]
        if holds["dearer"] and name not in DEARER:
            wrong.append(f"{name}: dearer")
    print("\n" + table(counts))
    assert wrong == []
    other = {family: row["decisions"] for family, row in counts.items() if row["decisions"] < row["scenarios"]}
    assert other == {}, "every method decides what the reference does in one of its runs"
