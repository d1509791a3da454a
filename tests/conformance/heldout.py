"""kerf's plans against Karpenter's own decisions on scenarios that neither has seen: those of the large set
changed at random: whole workloads (`likenesses`), as in scenarios that somebody else might make, or with `--wild`
single pods (`mutations`). It needs Go, which no other test does.

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

from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of, read_catalogues, read_scenarios
from tests.conformance.comparison import PRICE_TOLERANCE, left_over
from tests.conformance.karpenters import built, decided, plan_of
from tests.conformance.large_set import LARGE_SET
from tests.conformance.likenesses import alike
from tests.conformance.mutations import Scenario, mutated
from tests.support.judges.plans import faults

RUNS = 3
BATCH = 25
UNSOUND = "dearer, the reference's plan not being whole"


class Outcome(Struct, frozen=True):
    """Of one plan: the pods (names) that it leaves over, its price in USD per hour, and what is wrong with it, by the
    judge and by the model of the scheduler."""

    left: frozenset[str]
    price: float
    faults: tuple[str, ...]
    whole: bool


class Finding(Struct, frozen=True):
    """One scenario: kerf's plans without effort and with it beside Karpenter's. `alike`: which pods (names) differ in
    nothing but that, by what they have in common. `reference`: one per run."""

    name: str
    family: str
    alike: dict[str, tuple[str, str]]
    reference: tuple[Outcome, ...]
    first: Outcome
    best: Outcome

    @property
    def valid(self) -> list[Outcome]:
        """What Karpenter decided, where it can be carried out."""
        return [reference for reference in self.reference if not reference.faults]

    @property
    def lost(self) -> list[str]:
        """Pods that kerf leaves over, of kinds of which Karpenter leaves fewer over in all of its runs."""
        kinds = self._by_kind(self.best)
        for told in map(self._by_kind, self.reference):
            kinds = Counter({kind: count for kind, count in kinds.items() if count > told[kind]})
        return sorted(name for name in self.best.left if self.alike[name] in kinds)

    @property
    def comparable(self) -> list[Outcome]:
        """The valid ones that leave as many pods of each kind over."""
        return [reference for reference in self.valid if self._by_kind(reference) == self._by_kind(self.best)]

    def _by_kind(self, given: Outcome) -> Counter[tuple[str, str]]:
        return Counter(self.alike[name] for name in given.left)

    def kinds(self) -> Iterator[str]:
        """What is wrong."""
        if self.lost and not self.valid:
            yield "pending, the reference's plan being invalid"
        elif self.lost:
            fewer = len(self.best.left) < min(len(reference.left) for reference in self.reference)
            yield "others pending, but fewer" if fewer else "pending"
        yield from self._dearer()
        if self.best.faults or self.first.faults:
            yield "invalid"
        if not self.best.whole:
            yield "not whole" if any(reference.whole for reference in self.comparable) else "neither whole"

    def _dearer(self) -> Iterator[str]:
        cheaper = [reference for reference in self.comparable if reference.price < self.best.price - PRICE_TOLERANCE]
        if cheaper and not any(reference.whole for reference in cheaper):
            yield UNSOUND
        elif cheaper:
            yield "dearer" if len(cheaper) == len(self.comparable) else "dearer than the cheapest of its runs"


def whole(problem: Problem, made: Plan) -> bool:
    """Whether the model's scheduler binds every pod of it, whichever of its habits it has."""
    return not any(unbound_pods(problem, made, habit) for habit in SCHEDULER_VARIANTS)


def outcome(problem: Problem, made: Plan) -> Outcome:
    left = frozenset(pod.name for pod in problem.pods if pod.uid not in made.placed)
    cost = math.fsum(claim.price for claim in made.claims)
    return Outcome(left, cost, tuple(faults(problem, made)), whole(problem, made))


def found(scenarios: Sequence[Scenario], catalogues: Catalogues, runs: int) -> Iterator[tuple[Scenario, Finding]]:
    """Each scenario with what was found."""
    program = built()
    for start in range(0, len(scenarios), BATCH):
        batch = scenarios[start : start + BATCH]
        answers = decided(program, batch, LARGE_SET / "catalogues.json", runs)
        for scenario, (name, results) in zip(batch, answers, strict=True):
            problems = [result["error"] for result in results if "error" in result]
            assert name == scenario["name"]
            assert not problems, f"{name}: {problems}"
            problem = problem_of(scenario, catalogues)
            kinds = {pod.name: (pod.namespace, pod.shape) for pod in problem.pods}
            told = {
                json.dumps(result, sort_keys=True): outcome(problem, plan_of(problem, result)) for result in results
            }
            first, best = (outcome(problem, best_plan(problem, effort)) for effort in (0, EFFORT))
            yield scenario, Finding(name, scenario["family"], kinds, tuple(told.values()), first, best)


def said(finding: Finding) -> str:
    """One line."""
    told, best = finding.reference, finding.best
    costs = sorted({f"{reference.price:.6g}{'' if reference.whole else ' (not whole)'}" for reference in told})
    parts = [
        "; ".join(finding.kinds()),
        f"kerf {best.price:.6g} (first {finding.first.price:.6g}), reference {', '.join(costs)}",
        f"left over {len(best.left)}, reference {', '.join(str(len(reference.left)) for reference in told)}",
    ]
    if finding.lost:
        parts.append(f"lost: {', '.join(finding.lost[:8])}")
    parts += [
        f"{whose}: {fault}" for whose, one in (("kerf", best), ("reference", told[0])) for fault in one.faults[:2]
    ]
    return f"{finding.name}: " + " | ".join(parts)


def table(findings: Sequence[Finding]) -> str:
    """Per family (its letter) how many scenarios fail in which way, and sums of prices that can be compared."""
    rows: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for finding in findings:
        for column in (finding.family.partition("-")[0], "all"):
            for kind in ("scenarios", *finding.kinds()):
                rows[kind][column] += 1
            rows["reference invalid"][column] += not finding.valid
            rows["reference not whole"][column] += not any(told.whole for told in finding.reference)
            if finding.comparable:
                rows["price, first plan"][column] += finding.first.price
                rows["price"][column] += finding.best.price
                rows["price, reference's cheapest run"][column] += min(told.price for told in finding.comparable)
    columns = sorted(rows["scenarios"], key=lambda each: (each == "all", each))
    width = max(map(len, rows))
    head = " " * width + "".join(f"{column:>9}" for column in columns)
    lines = [
        f"{kind:<{width}}" + "".join(f"{row[column]:>9.6g}" for column in columns) for kind, row in sorted(rows.items())
    ]
    return "\n".join([head, *lines])


def agreement(findings: Sequence[Finding]) -> str:
    """How far the results at hand (results.jsonl) agree with what the program says now."""
    expected = {read_scenario["name"]: read_scenario for read_scenario in read_scenarios(LARGE_SET / "results.jsonl")}
    counts: Counter[str] = Counter()
    for finding in findings:
        given = expected[finding.name]
        kind = "stable" if given["stable"] else "unstable"
        same = left_over(given["result"]) == finding.reference[0].left
        alike = abs(given["summary"]["totalCheapestPrice"] - finding.reference[0].price) <= PRICE_TOLERANCE
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
    parser.add_argument("--wild", action="store_true", help="single pods are changed, too")
    parser.add_argument("--given", action="store_true", help="the scenarios as they are")
    parser.add_argument("--out", type=Path, help="a folder for the scenarios that fail")
    asked: Any = parser.parse_args()
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    scenarios = list(read_scenarios(LARGE_SET / "scenarios.jsonl"))
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.wild:
        scenarios = [mutated(scenarios, seed) for seed in seeds]
    elif not asked.given:
        types = json.loads((LARGE_SET / "catalogues.json").read_text())["catalogues"]
        scenarios = [alike(scenarios, types, seed) for seed in seeds]
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
