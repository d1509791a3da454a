"""What each heuristic of the optimizer buys: plans made without one of them, beside those made with all.

    python benchmarks/ablation.py [ABLATION ...] [--given 60] [--mutated 60] [--alike 60] [--first 0]
        [--nominations] [--json]

The scenarios: every so many of the conformance set, and some made of it by random changes (mutations.py and
likenesses.py of tests/conformance) from seed `--first` on. For each ablation:

* `price` of the plans, in per cent more than with all heuristics, where as many pods have a place;
* `dearer` and `cheaper` scenarios, `over_1pc` those that are dearer by over one per cent, and the `worst` of them;
* `pending` pods more, and `lost`: scenarios with more;
* `whole` plans more (every variant of the scheduler's model binds them);
* `cpu_s`, and `cpu` in per cent of that of all.

Nothing in the engine can be switched off: the script replaces functions of it while it plans. With no ABLATION all are
measured.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import Struct
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.combined_trace import planners_own
from kerf.engine.scheduling.optimizer.instance_options import InstanceOption
from kerf.engine.scheduling.optimizer.search.regrouping import PodGroup
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of, read_catalogues, read_scenarios
from tests.conformance.large_set import ABSENT, LARGE_SET
from tests.conformance.likenesses import alike
from tests.conformance.mutations import mutated

OPTIMIZER = "kerf.engine.scheduling.optimizer"
SEARCH, FIRST, SETS = f"{OPTIMIZER}.search.search", f"{OPTIMIZER}.first_plan", f"{OPTIMIZER}.node_sets"
CHOICE, REGROUPING = f"{OPTIMIZER}.bindability.BindableChoice", f"{OPTIMIZER}.search.regrouping"
NO_CENT = 1e-9


def gives(value: object) -> Callable[..., object]:
    """A function that gives this, whatever it is asked."""
    return lambda *_, **__: value


def group_on(option: InstanceOption, taken: dict[int, int]) -> PodGroup:
    return PodGroup(option.template, option.type_number, option.price, tuple(sorted(taken.items())))


ABLATIONS: dict[str, dict[str, object]] = {
    "search": {f"{SEARCH}.Search.run": gives(None)},
    "regroup all": {f"{SEARCH}.Search._regroup_all": gives(None)},
    "regroup worst": {f"{SEARCH}.Search._regroup_worst": gives(None)},
    "regroup at all": {f"{SEARCH}.Search._with_groups": gives(None)},
    "regroup related pods": {f"{OPTIMIZER}.search.movable_pods._topology_ties": gives({})},
    "types tried 32": {f"{REGROUPING}.TYPES_TRIED": (2, 8)},
    "types tried 8, 32": {f"{REGROUPING}.TYPES_TRIED": (2,)},
    "cheapest size": {
        f"{REGROUPING}.Regrouping._on_cheapest_size": lambda self, option, _, taken, __: group_on(option, taken)
    },
    "repricing": {f"{REGROUPING}.REPRICE_BELOW": 0.0},
    "size caps": {f"{SEARCH}.types_above_caps": gives([])},
    "caps first": {f"{SEARCH}.CAPS_BEFORE_REGROUPING": 0},
    "caps after": {f"{OPTIMIZER}.search.size_caps.CAP_EIGHTHS": (4, 2)},
    "vary domains": {f"{SEARCH}.Search._with_other_domains": gives(())},
    "pools first": {f"{SEARCH}.Search._with_pools_first": gives(())},
    "preferences kept": {f"{SEARCH}.Search._keeps_preferences": gives(True)},
    "lower bound": {f"{OPTIMIZER}.best_plan.lower_bound": gives(0.0)},
    "widened": {f"{SEARCH}.Search.widened": lambda self, candidate: candidate},
    "rating": {f"{CHOICE}.best": gives(None)},
    "further nodes": {f"{SEARCH}.Search.with_further_nodes": gives(None)},
    "made whole": {f"{CHOICE}._made_whole": gives(())},
    "leaner sets": {f"{SETS}.node_set_search.NodeSetSearch.leaner": lambda self, node_set: node_set},
    "cannot be whole": {f"{CHOICE}._cannot_be_whole": gives(False)},
    "leftover estimate": {f"{SETS}.leftover_estimate.LeftoverEstimate.unbound": gives(0)},
    "uniform nodes": {f"{SETS}.larger_sets._uniform": gives(())},
    "joined sorts": {
        f"{SETS}.larger_sets._joined_sorts": lambda _, node_set, one, sorts: (one, list(next(iter(sorts))))
    },
    "roomier nodes": {f"{SETS}.new_nodes.NewNode.roomier": ()},
    "one more node": {f"{SETS}.larger_sets.MAX_TYPES_ADDED": 0},
    "trails of cheap sets": {f"{SETS}.node_set_search.CHEAP_TURN_EVERY": 10**9},
    "binds in some order": {f"{SEARCH}.Search._binds_in_some_order": gives(True)},
    "moved binds": {f"{SEARCH}.Search._bindable": gives(True)},
    "by weight": {f"{OPTIMIZER}.alternative_plans._keeps_weights": gives(True)},
    "first plan": {f"{OPTIMIZER}.best_plan.first_plan": lambda problem: (problem, plan(problem))},
    "first: combined": {f"{FIRST}.first_plan.combined_changes": gives(())},
    "first: large problems": {f"{FIRST}.first_plan.LARGE_PROBLEM": 10**9},
    "first: unplaceable": {f"{FIRST}.unplaceable_pods.UnplaceablePods.of": gives(frozenset())},
    "first: partners": {f"{FIRST}.problem_changes.affinity_partners": gives(frozenset())},
    "first: groups": {f"{FIRST}.problem_changes.MAX_GROUPS_AHEAD": 0},
    "first: ahead": {f"{FIRST}.problem_changes.MAX_ROUNDS_AHEAD": 0},
    "first: left out": {f"{FIRST}.problem_changes._options_to_leave_out": gives(())},
    "devices": {
        f"{OPTIMIZER}.best_plan.optimize_without_devices": lambda problem, _: planners_own(problem, plan(problem))
    },
}
"""What stands in the place of which function or constant of the engine."""


class Outcome(Struct, frozen=True):
    """Of one plan: USD per hour, pods without a place, whether it binds whole, and CPU seconds."""

    price: float
    pending: int
    whole: bool
    cpu: float


@contextmanager
def without(ablation: str) -> Iterator[None]:
    patches = [patch(name, value) for name, value in ABLATIONS.get(ablation, {}).items()]
    for patched in patches:
        patched.start()
    try:
        yield
    finally:
        for patched in patches:
            patched.stop()


def outcome(problem: Problem, ablation: str = "") -> Outcome:
    with without(ablation):
        began = time.process_time()
        planned = best_plan(problem, EFFORT)
        cpu = time.process_time() - began
    whole = not any(unbound_pods(problem, planned, variant) for variant in SCHEDULER_VARIANTS)
    pending = len(problem.pods) - len(planned.placed)
    return Outcome(math.fsum(claim.price for claim in planned.claims), pending, whole, cpu)


def problems(asked: argparse.Namespace) -> Iterator[tuple[str, Problem]]:
    """The scenarios asked for, by name."""
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    given = list(read_scenarios(LARGE_SET / "scenarios.jsonl"))
    types = json.loads((LARGE_SET / "catalogues.json").read_text())["catalogues"]
    step = max(1, len(given) // asked.given) if asked.given else 1
    chosen = given[asked.first % step :: step][: asked.given]
    chosen += [mutated(given, seed) for seed in range(asked.first, asked.first + asked.mutated)]
    chosen += [alike(given, types, seed) for seed in range(asked.first, asked.first + asked.alike)]
    for scenario in chosen:
        problem = problem_of(scenario, catalogues)
        yield scenario["name"], replace(problem, settings=replace(problem.settings, nominations=asked.nominations))


def _dearer_by(before: float, after: float) -> float:
    """In per cent. Where a plan launched nothing before, 100."""
    return round(100 * (after / before - 1), 1) if before > NO_CENT else 100.0


def row(names: Sequence[str], full: Sequence[Outcome], less: Sequence[Outcome]) -> dict[str, Any]:
    """What is told of one ablation."""
    pairs = list(zip(names, full, less, strict=True))
    same = [(name, a, b) for name, a, b in pairs if a.pending == b.pending]
    before, after = math.fsum(a.price for _, a, _ in same), math.fsum(b.price for _, _, b in same)
    dearer = {name: _dearer_by(a.price, b.price) for name, a, b in same if b.price > a.price + NO_CENT}
    cpu = math.fsum(run.cpu for run in less)
    return {
        "price": round(100 * (after / before - 1), 3) if before else 0.0,
        "dearer": len(dearer),
        "cheaper": sum(b.price < a.price - NO_CENT for _, a, b in same),
        "over_1pc": sum(share > 1 for share in dearer.values()),
        "worst": sorted(dearer.items(), key=lambda each: -each[1])[:3],
        "pending": sum(b.pending - a.pending for _, a, b in pairs),
        "lost": [name for name, a, b in pairs if b.pending > a.pending][:4],
        "whole": sum(b.whole - a.whole for _, a, b in pairs),
        "cpu_s": round(cpu, 1),
        "cpu": round(100 * cpu / math.fsum(run.cpu for run in full)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="What each heuristic of the optimizer buys")
    parser.add_argument("ablations", nargs="*", help=f"of {', '.join(ABLATIONS)}")
    parser.add_argument("--given", type=int, default=60, help="scenarios of the conformance set")
    parser.add_argument("--mutated", type=int, default=60, help="scenarios with single pods changed at random")
    parser.add_argument("--alike", type=int, default=60, help="scenarios with whole workloads changed at random")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--nominations", action="store_true", help="pods are told their nodes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.ablations) - ABLATIONS.keys()):
        parser.error(f"unknown: {', '.join(unknown)}")
    if not LARGE_SET.is_dir():
        parser.error(ABSENT)
    chosen = list(problems(asked))
    names = [name for name, _ in chosen]
    full = [outcome(problem) for _, problem in chosen]
    rows = {"": row(names, full, full) | {"sum": round(math.fsum(run.price for run in full), 4)}}
    rows[""]["whole"] = sum(run.whole for run in full)
    for ablation in asked.ablations or ABLATIONS:
        rows[ablation] = row(names, full, [outcome(problem, ablation) for _, problem in chosen])
        if not asked.json:
            print(ablation, json.dumps(rows[ablation]), flush=True)
    print(json.dumps(rows if asked.json else rows[""]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
