"""Measure what plans cost beside the reference's, on scenarios that neither has seen, with and without nomination.

    python benchmarks/prices.py [--seeds 240] [--first 140000] [--effort 100] [--answers FILE] [--kept FILE] [--each]

The scenarios are those of the large set, changed at random by workload (tests/conformance/likenesses.py), one for each
seed. Karpenter's own code decides each of them three times (`make reference-scenarios` builds it; Go). Its answers are
kept in `--answers`, so that a second run with the same seeds needs no Go and only kerf's CPU. Each scenario is planned
once as where pods are told their nodes, and once as where they are not (`kerf plan --no-nominate`).

Prints one JSON object, with these figures for `nominated` and `not_nominated`:

- `price`, `reference`: USD per hour in sum, of the scenarios in which both place as many pods of each kind; of the
  reference's runs the cheapest. `cheaper`: by how many percent kerf is cheaper in sum.
- `dearer`: the scenarios in which kerf's plan costs more, by how many percent. `dearer_than_whole`: those of them in
  which the reference's plan binds whole by the model of kube-scheduler.
- `whole`, `reference_whole`: plans that launch nodes and bind whole by every variant of the model, in which pods are
  not told their nodes. `launching`: plans that launch nodes.
- `lost`: scenarios with pods left over of kinds of which the reference leaves fewer over. `faults`: plans that the
  judge refuses.
- `cpu`, `slowest`: seconds of CPU that planning took, and the slowest plan of it.

`--each` adds the figures of every scenario. `--kept` writes the scenarios to a file, for `kerf plan` and binding.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.problem.problem import Problem
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of, read_catalogues, read_scenarios
from tests.conformance.comparison import PRICE_TOLERANCE
from tests.conformance.heldout import Outcome, outcome
from tests.conformance.karpenters import Result, built, decided, plan_of
from tests.conformance.large_set import LARGE_SET
from tests.conformance.likenesses import alike

RUNS = 3
CATALOGUES = LARGE_SET / "catalogues.json"
WAYS = {"nominated": True, "not_nominated": False}


class Measured(Struct, frozen=True):
    """kerf's plan of one scenario beside the reference's. `comparable`: the reference's runs that leave as many pods of
    each kind over and can be carried out."""

    name: str
    ours: Outcome
    comparable: tuple[Outcome, ...]
    lost: bool
    claims: int
    cpu: float

    @property
    def reference(self) -> float:
        """USD per hour: the cheapest of the comparable runs."""
        return min(reference.price for reference in self.comparable)

    @property
    def dearer(self) -> float:
        """By how many percent kerf's plan costs more than the reference's; 0 if it does not."""
        if not self.comparable or self.ours.price <= self.reference + PRICE_TOLERANCE:
            return 0.0
        return round(100 * (self.ours.price / self.reference - 1), 2) if self.reference else float("inf")

    @property
    def dearer_than_whole(self) -> float:
        """The same, beside the cheapest of the reference's runs that bind whole."""
        return replace(self, comparable=tuple(reference for reference in self.comparable if reference.whole)).dearer


def scenarios_of(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A scenario for each seed."""
    known = list(read_scenarios(LARGE_SET / "scenarios.jsonl"))
    types = json.loads(CATALOGUES.read_text())["catalogues"]
    return (alike(known, types, seed) for seed in seeds)


def answers_to(scenarios: Sequence[dict[str, Any]], kept: Path | None) -> dict[str, list[Result]]:
    """What the reference decides, by the scenario's name: read from the file, or asked and written to it."""
    known: dict[str, list[Result]] = json.loads(kept.read_text()) if kept is not None and kept.is_file() else {}
    missing = [scenario for scenario in scenarios if scenario["name"] not in known]
    if missing:
        known |= dict(decided(built(), missing, CATALOGUES, RUNS))
    if missing and kept is not None:
        kept.write_text(json.dumps(known))
    return known


def measured(problem: Problem, name: str, effort: int, reference: Sequence[Outcome]) -> Measured:
    """Plan once, and hold the plan against the reference's runs."""
    began = time.process_time()
    plan = best_plan(problem, effort)
    cpu = time.process_time() - began
    kinds = {pod.name: (pod.namespace, pod.shape) for pod in problem.pods}
    ours = outcome(problem, plan)
    left = Counter(kinds[uid] for uid in ours.left)
    theirs = [Counter(kinds[uid] for uid in told.left) for told in reference]
    comparable = tuple(told for told, over in zip(reference, theirs, strict=True) if over == left and not told.faults)
    lost = any(all(count > over[kind] for over in theirs) for kind, count in left.items())
    return Measured(name, ours, comparable, lost, len(plan.claims), cpu)


def figures(found: Sequence[Measured]) -> dict[str, Any]:
    """The sums of one way of planning."""
    compared = [finding for finding in found if finding.comparable]
    launching = [finding for finding in found if finding.claims]
    price, reference = sum(finding.ours.price for finding in compared), sum(finding.reference for finding in compared)
    return {
        "compared": len(compared),
        "price": round(price, 4),
        "reference": round(reference, 4),
        "cheaper": round(100 * (1 - price / reference), 2),
        "dearer": {finding.name: finding.dearer for finding in compared if finding.dearer},
        "dearer_than_whole": {
            finding.name: finding.dearer_than_whole for finding in compared if finding.dearer_than_whole
        },
        "launching": len(launching),
        "whole": sum(finding.ours.whole for finding in launching),
        "reference_whole": sum(finding.comparable[0].whole for finding in launching if finding.comparable),
        "lost": [finding.name for finding in found if finding.lost],
        "faults": [finding.name for finding in found if finding.ours.faults],
        "cpu": round(sum(finding.cpu for finding in found), 1),
        "slowest": round(max(finding.cpu for finding in found), 2),
    }


def each_of(found: Measured) -> dict[str, Any]:
    """One scenario."""
    reference = round(found.reference, 6) if found.comparable else None
    return {
        "price": round(found.ours.price, 6),
        "reference": reference,
        "reference_whole": any(comparable.whole for comparable in found.comparable),
        "whole": found.ours.whole,
        "left": len(found.ours.left),
        "cpu": round(found.cpu, 3),
    }


def main() -> int:
    text = __doc__ or ""
    parser = argparse.ArgumentParser(
        description=text.partition("\n")[0],
        epilog=text.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=240)
    parser.add_argument("--first", type=int, default=140_000)
    parser.add_argument("--effort", type=int, default=EFFORT)
    parser.add_argument("--answers", type=Path, help="a file that keeps the reference's answers")
    parser.add_argument("--kept", type=Path, help="a file for the scenarios")
    parser.add_argument("--way", choices=WAYS, action="append", help="one way of planning alone")
    parser.add_argument("--each", action="store_true", help="every scenario's figures, too")
    asked = parser.parse_args()
    scenarios = list(scenarios_of(range(asked.first, asked.first + asked.seeds)))
    if asked.kept is not None:
        asked.kept.write_text("".join(json.dumps(scenario) + "\n" for scenario in scenarios))
    catalogues = read_catalogues(CATALOGUES)
    answers = answers_to(scenarios, asked.answers)
    found: dict[str, list[Measured]] = {way: [] for way in asked.way or WAYS}
    for scenario in scenarios:
        problem, name = problem_of(scenario, catalogues), scenario["name"]
        reference = [outcome(problem, plan_of(problem, answer)) for answer in answers[name] if "error" not in answer]
        for way, results in found.items():
            settings = replace(problem.settings, nominations=WAYS[way])
            results.append(measured(replace(problem, settings=settings), name, asked.effort, reference))
    result: dict[str, Any] = {"seeds": asked.seeds, "first": asked.first, "effort": asked.effort}
    result |= {way: figures(findings) for way, findings in found.items()}
    if asked.each:
        result["each"] = {
            way: {finding.name: each_of(finding) for finding in results} for way, results in found.items()
        }
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
