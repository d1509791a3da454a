"""kerf's plans against Karpenter's own decisions on scenarios that neither has seen: those of ../shared/conformance,
changed at random (`mutations`). It needs Go, which no other test does.

`python -m tests.conformance.heldout --seeds 300 --first 0 --out FOLDER` tries so many, prints a table and writes what
failed; `--given` compares on the scenarios as they are, and says how far the results at hand agree with Karpenter's.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kerf.engine.scheduling.improvement.best import best_plan
from kerf.engine.scheduling.improvement.habits import HABITS
from kerf.engine.scheduling.improvement.rating import unbound
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem import Problem
from kerf.replay.scenario_catalogues import Catalogues
from kerf.replay.scenarios import EFFORT, problem_of, read_catalogues, read_scenarios
from tests.conformance.comparison import PRICE_TOLERANCE, left_over
from tests.conformance.karpenters import Result, built, decided, plan_of, price
from tests.conformance.mutations import FOLDER, Scenario, mutated
from tests.support.judge import faults

RUNS = 3
BATCH = 25
UNSOUND = "dearer, the reference's plan not being whole"


class Reference(Struct, frozen=True):
    """What Karpenter decided in its runs: the pods (names) that it left over in each, the price of each in USD per
    hour, and what is wrong with the first, by the judge and by the model of the scheduler."""

    left: tuple[frozenset[str], ...]
    prices: tuple[float, ...]
    faults: tuple[str, ...]
    whole: bool


class Ours(Struct, frozen=True):
    """The same of a plan of kerf's."""

    left: frozenset[str]
    price: float
    faults: tuple[str, ...]
    whole: bool


class Finding(Struct, frozen=True):
    """One scenario: kerf's plans without effort and with it beside Karpenter's. `alike`: which pods (names) differ in
    nothing but that, by what they have in common."""

    name: str
    family: str
    alike: dict[str, tuple[str, str]]
    reference: Reference
    first: Ours
    best: Ours

    @property
    def lost(self) -> list[str]:
        """Pods that kerf leaves over, of kinds of which Karpenter leaves fewer over in all of its runs."""
        kinds = Counter(self.alike[name] for name in self.best.left)
        for each in {self.alike[name] for name in self.best.left}:
            theirs = max(sum(self.alike[name] == each for name in left) for left in self.reference.left)
            if kinds[each] <= theirs:
                del kinds[each]
        return sorted(name for name in self.best.left if self.alike[name] in kinds)

    @property
    def fewer(self) -> bool:
        """Whether kerf leaves fewer pods over than any of the runs."""
        return len(self.best.left) < min(map(len, self.reference.left))

    @property
    def comparable(self) -> list[float]:
        """The prices of the runs that leave as many pods of each kind over, if what they decided is valid."""
        if self.reference.faults:
            return []
        ours = self._by_kind(self.best.left)
        paired = zip(self.reference.left, self.reference.prices, strict=True)
        return [cost for left, cost in paired if self._by_kind(left) == ours]

    def _by_kind(self, left: frozenset[str]) -> Counter[tuple[str, str]]:
        return Counter(self.alike[name] for name in left)

    @property
    def dearer(self) -> bool:
        """Above all runs."""
        return bool(self.comparable) and self.best.price > max(self.comparable) + PRICE_TOLERANCE

    def kinds(self) -> Iterator[str]:
        """What is wrong."""
        if self.lost and self.reference.faults:
            yield "pending, the reference's plan being invalid"
        elif self.lost:
            yield "others pending, but fewer" if self.fewer else "pending"
        if self.dearer:
            yield "dearer" if self.reference.whole else UNSOUND
        if self.comparable and min(self.comparable) + PRICE_TOLERANCE < self.best.price <= max(self.comparable):
            yield "dearer than the cheapest of its runs"
        if self.best.faults or self.first.faults:
            yield "invalid"
        if not self.best.whole:
            yield "not whole" if self.reference.whole else "neither whole"


def whole(problem: Problem, made: Plan) -> bool:
    """Whether the model's scheduler binds every pod of it, whichever of its habits it has."""
    return not any(unbound(problem, made, habit) for habit in HABITS)


def ours(problem: Problem, effort: int) -> Ours:
    made = best_plan(problem, effort)
    left = frozenset(pod.name for pod in problem.pods if pod.uid not in made.placed)
    cost = math.fsum(each.price for each in made.claims)
    return Ours(left, cost, tuple(faults(problem, made)), whole(problem, made))


def reference(problem: Problem, runs: Sequence[Result]) -> Reference:
    made = plan_of(problem, runs[0])
    return Reference(
        left=tuple(left_over(each) for each in runs),
        prices=tuple(price(each) for each in runs),
        faults=tuple(faults(problem, made)),
        whole=whole(problem, made),
    )


def found(scenarios: Sequence[Scenario], catalogues: Catalogues, runs: int) -> Iterator[tuple[Scenario, Finding]]:
    """Each scenario with what was found."""
    program = built()
    for start in range(0, len(scenarios), BATCH):
        batch = scenarios[start : start + BATCH]
        answers = decided(program, batch, FOLDER / "catalogues.json", runs)
        for scenario, (name, results) in zip(batch, answers, strict=True):
            problems = [each["error"] for each in results if "error" in each]
            assert name == scenario["name"]
            assert not problems, f"{name}: {problems}"
            problem = problem_of(scenario, catalogues)
            alike = {pod.name: (pod.namespace, pod.shape) for pod in problem.pods}
            told, first, best = reference(problem, results), ours(problem, 0), ours(problem, EFFORT)
            yield scenario, Finding(name, scenario["family"], alike, told, first, best)


def said(finding: Finding) -> str:
    """One line."""
    told, best = finding.reference, finding.best
    prices = "…".join(f"{each:.6g}" for each in sorted({min(told.prices), max(told.prices)}))
    parts = [
        "; ".join(finding.kinds()),
        f"kerf {best.price:.6g} (first {finding.first.price:.6g}), reference {prices}",
        f"left over {len(best.left)}, reference {', '.join(str(len(each)) for each in told.left)}",
    ]
    if finding.lost:
        parts.append(f"lost: {', '.join(finding.lost[:8])}")
    parts += [f"{whose}: {each}" for whose, one in (("kerf", best), ("reference", told)) for each in one.faults[:2]]
    return f"{finding.name}: " + " | ".join(parts)


def table(findings: Sequence[Finding]) -> str:
    """Per family (its letter) how many scenarios fail in which way, and sums of prices that can be compared."""
    rows: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for each in findings:
        for column in (each.family.partition("-")[0], "all"):
            for kind in ("scenarios", *each.kinds()):
                rows[kind][column] += 1
            rows["reference invalid"][column] += bool(each.reference.faults)
            rows["reference not whole"][column] += not each.reference.whole
            if each.comparable:
                rows["price, first plan"][column] += each.first.price
                rows["price"][column] += each.best.price
                rows["price, reference's cheapest run"][column] += min(each.comparable)
    columns = sorted(rows["scenarios"], key=lambda each: (each == "all", each))
    width = max(map(len, rows))
    head = " " * width + "".join(f"{each:>9}" for each in columns)
    lines = [
        f"{kind:<{width}}" + "".join(f"{row[each]:>9.6g}" for each in columns) for kind, row in sorted(rows.items())
    ]
    return "\n".join([head, *lines])


def agreement(findings: Sequence[Finding]) -> str:
    """How far the results at hand (results.jsonl) agree with what the program says now."""
    expected = {each["name"]: each for each in read_scenarios(FOLDER / "results.jsonl")}
    counts: Counter[str] = Counter()
    for each in findings:
        given = expected[each.name]
        kind = "stable" if given["stable"] else "unstable"
        same = left_over(given["result"]) == each.reference.left[0]
        alike = abs(given["summary"]["totalCheapestPrice"] - each.reference.prices[0]) <= PRICE_TOLERANCE
        counts += Counter({kind: 1, f"{kind}, same pods left over": same, f"{kind}, same price": alike})
    return "\n".join(f"{name}: {count}" for name, count in sorted(counts.items()))


def kept(folder: Path, scenario: Scenario, finding: Finding) -> None:
    """The scenario, as `kerf plan` reads it, and what was found of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{finding.name}.jsonl").write_text(json.dumps(scenario) + "\n")
    with (folder / "findings.txt").open("a") as findings:
        findings.write(said(finding) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=RUNS, help="of the reference, per scenario")
    parser.add_argument("--given", action="store_true", help="the scenarios as they are")
    parser.add_argument("--out", type=Path, help="a folder for the scenarios that fail")
    asked: Any = parser.parse_args()
    catalogues = read_catalogues(FOLDER / "catalogues.json")
    scenarios = list(read_scenarios(FOLDER / "scenarios.jsonl"))
    if not asked.given:
        scenarios = [mutated(scenarios, seed) for seed in range(asked.first, asked.first + asked.seeds)]
    began, findings = time.monotonic(), []
    for scenario, finding in found(scenarios, catalogues, asked.runs):
        findings.append(finding)
        if any(finding.kinds()):
            print(said(finding), flush=True)
            if asked.out is not None:
                kept(asked.out, scenario, finding)
    print(table(findings), f"{len(findings)} scenarios, {time.monotonic() - began:.0f} s", sep="\n")
    if asked.given:
        print(agreement(findings))


if __name__ == "__main__":
    main()
