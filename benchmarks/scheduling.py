"""How fast pods are planned onto nodes.

    python benchmarks/scheduling.py --pods 1000 --shape plain-ec2 [--runs 5] [--effort 0] [--json]
    python benchmarks/scheduling.py --growth [--runs 1] [--json]
    python benchmarks/scheduling.py --effort-curve [--json]
    python benchmarks/scheduling.py --karpenter [--runs 3] [--json]
    python benchmarks/scheduling.py --overlays [--runs 3] [--json]

`seconds` is the best of some runs on a compiled catalogue, `cpu_seconds` likewise; `first_seconds` the first one, which
compiles it too.
`price` is the sum of the claims' cheapest offerings, USD per hour; with `--effort`, `first_price` is what it was before
any effort, `lower_bound` what it is at least, and `unbound` the pods that kube-scheduler would leave over.
`--growth` measures the shape with 1,000, 10,000 and 100,000 pods, and the other cases that matter, one after the other;
`cost_growth` is the seconds per pod of the largest over those of the smallest.
`--effort-curve` plans the conformance scenarios beside the repository with more and more effort: per effort how many
plans bind whole, their price in sum, and the CPU seconds of all, and of the dearest one.
`--karpenter` runs Karpenter's own benchmark of its scheduler (`make reference` builds it) and kerf's planner, at effort
0, on pods of the same mix, in turns: pods per second of wall time, best of the runs, and nodes. Karpenter's uses all
processors; its `cpu_seconds` are those of a whole run, with what it makes before. `ratio`: kerf's pods per second over
Karpenter's; `cpu_ratio`: Karpenter's CPU seconds over kerf's, which says more on a machine that others use.
`--overlays` puts NodeOverlays into the catalogues of NodePools, all of EC2's types each, none of it known from before:
CPU seconds, best of the runs. Each overlay is about a family of types (`alike`), or about one NodePool (`apart`).
`ratio`: over what one NodePool takes with as many overlays.
`baseline_seconds` is a fixed loop of plain Python in the same process: figures of two machines, or of one at two times,
compare through it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import karpenter
from benchmarks.workloads.scheduling import SHAPES, overlaid
from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.launchable.node_overlays import overlaid_catalogues
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem
from kerf.replay.scenarios.plan_scenarios import problem_of, read_catalogues, read_scenarios
from tests.conformance.large_set import ABSENT, LARGE_SET

EFFORTS = (0, 10, 25, 50, 100, 200, 400)

BASELINE_STEPS = 2_000_000
TARGET = {"plain-ec2": 5_000.0, "diverse": 8_000.0, "preferences": 3_000.0, "unique": 1_000.0}
"""Pods per second: for 1,000 pods; diverse for 5,000 to 20,000; preferences for 4,000; unique for 5,000."""
KARPENTERS = {
    "BenchmarkScheduling1000": ("diverse", 1_000),
    "BenchmarkScheduling5000": ("diverse", 5_000),
    "BenchmarkScheduling10000": ("diverse", 10_000),
    "BenchmarkRespectPreferences": ("preferences", 4_000),
}
"""Karpenter's benchmarks, by name: the same pods here."""
OVERLAYS = ((30, 30), (90, 44))
"""NodePools and NodeOverlays."""
GROWTH = (1_000, 10_000, 100_000)
CASES = (("beside-nodes", 1_000), ("plain-ec2", 1_000), ("preferences", 4_000), ("unique", 5_000))


def baseline() -> float:
    """Seconds for a fixed loop."""
    started = time.perf_counter()
    total = 0
    for number in range(BASELINE_STEPS):
        total ^= number * 3
    assert total >= 0
    return time.perf_counter() - started


def timed(problem: Problem, effort: int) -> tuple[float, float, Plan]:
    """Seconds of wall and of processor time."""
    started, used = time.perf_counter(), time.process_time()
    planned = best_plan(problem, effort)
    return time.perf_counter() - started, time.process_time() - used, planned


def measure(shape: str, pods: int, runs: int, effort: int) -> dict[str, Any]:
    problem = SHAPES[shape](pods)
    first, _, planned = timed(problem, effort)
    times = [timed(problem, effort)[:2] for _ in range(runs)]
    seconds, cpu = min(wall for wall, _ in times), min(cpu for _, cpu in times)
    placed = len(planned.placed)
    if placed != pods:
        raise SystemExit(f"{pods - placed} pods were not placed: the workload or the planner is wrong")
    return {
        "shape": shape,
        "pods": pods,
        "effort": effort,
        "types": sum(len(catalogue.types) for catalogue in problem.catalogues.values()),
        "pods_per_s": round(pods / seconds, 1),
        "seconds": round(seconds, 6),
        "cpu_seconds": round(cpu, 6),
        "first_seconds": round(first, 6),
        "nodes": len(planned.claims),
        "price": round(math.fsum(claim.price for claim in planned.claims), 6),
        "first_price": round(planned.first_price, 6) if effort else None,
        "lower_bound": round(planned.lower_bound, 6) if effort else None,
        "unbound": len(planned.unbound) if planned.rated else None,
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "baseline_seconds": round(baseline(), 6),
        "target_pods_per_s": TARGET.get(shape),
        "python": platform.python_version(),
    }


def beside_karpenter(runs: int) -> dict[str, Any]:
    """Each benchmark of Karpenter's, and kerf's planner on as many pods of that mix right after it."""
    found = {}
    for name, (shape, pods) in KARPENTERS.items():
        theirs = karpenter.scheduling(name, runs)
        ours = {key: value for key, value in measure(shape, pods, runs, 0).items() if key in theirs}
        ratio = round(ours["pods_per_s"] / theirs["pods_per_s"], 2)
        cpu_ratio = round(theirs["cpu_seconds"] / ours["cpu_seconds"], 2)
        found[f"{shape} {pods}"] = {"kerf": ours, "karpenter": theirs, "ratio": ratio, "cpu_ratio": cpu_ratio}
    return {**found, "load": os.getloadavg()[0], "baseline_seconds": round(baseline(), 6)}


def growth(shape: str, runs: int, effort: int) -> dict[str, Any]:
    """How the cost grows, and the cases: many nodes, EC2's types, every pod its own class; pods per second."""
    sizes = {pods: measure(shape, pods, runs, effort)["pods_per_s"] for pods in GROWTH}
    return {
        "shape": shape,
        "pods_per_s": sizes,
        "cost_growth": round(sizes[GROWTH[0]] / sizes[GROWTH[-1]], 3),
        "cases": {f"{name} {pods}": measure(name, pods, runs, effort)["pods_per_s"] for name, pods in CASES},
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "baseline_seconds": round(baseline(), 6),
    }


def effort_curve() -> dict[str, Any]:
    """What effort buys: scenarios with new nodes, those whose plan binds whole, prices in USD per hour, CPU seconds."""
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    problems = [problem_of(scenario, catalogues) for scenario in read_scenarios(LARGE_SET / "scenarios.jsonl")]
    curve = []
    for effort in EFFORTS:
        seconds, price, whole = [0.0], 0.0, 0
        for problem in problems:
            started = time.process_time()
            planned = best_plan(problem, effort)
            seconds.append(time.process_time() - started)
            price += math.fsum(claim.price for claim in planned.claims)
            left = planned.unbound if planned.rated else unbound_pods(problem, planned)
            whole += bool(planned.claims) and not left
        curve.append(
            {
                "effort": effort,
                "whole": whole,
                "price": round(price, 4),
                "cpu_s": round(math.fsum(seconds), 3),
                "most_cpu_s": round(max(seconds), 3),
            }
        )
    return {"scenarios": len(problems), "curve": curve, "baseline_seconds": round(baseline(), 6)}


def overlays(runs: int) -> dict[str, Any]:
    """What NodeOverlays of many NodePools cost, beside those of one."""

    fresh = itertools.count()

    def cpu_seconds(pools: int, count: int, apart: bool) -> float:
        times = []
        for _ in range(runs):
            made, offered = overlaid(pools, count, next(fresh), apart=apart)
            started = time.process_time()
            overlaid_catalogues(made, offered)
            times.append(time.process_time() - started)
        return min(times)

    found: dict[str, Any] = {}
    for pools, count in OVERLAYS:
        for way, apart in (("alike", False), ("apart", True)):
            one, many = cpu_seconds(1, count, apart), cpu_seconds(pools, count, apart)
            found[f"{pools} NodePools, {count} overlays, {way}"] = {
                "cpu_seconds": round(many, 4),
                "one_cpu_seconds": round(one, 4),
                "ratio": round(many / one, 2),
                "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            }
    return {**found, "baseline_seconds": round(baseline(), 6)}


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast pods are planned onto nodes")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--shape", default="plain-ec2", help=f"one of {', '.join(SHAPES)}")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--effort", type=int, default=0, help="search steps for a cheaper plan; 0: the first one")
    parser.add_argument("--growth", action="store_true", help="several sizes and cases instead of one")
    parser.add_argument("--effort-curve", action="store_true", help="what effort buys on the conformance scenarios")
    parser.add_argument("--karpenter", action="store_true", help="beside Karpenter's own benchmark")
    parser.add_argument("--overlays", action="store_true", help="NodeOverlays of many NodePools beside those of one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    if asked.shape not in SHAPES:
        parser.error(f"unknown shape {asked.shape}; known ones: {', '.join(SHAPES)}")
    if asked.pods < 1 or asked.runs < 1 or asked.effort < 0:
        parser.error("--pods and --runs are at least 1, --effort at least 0")
    if asked.effort_curve:
        if not LARGE_SET.is_dir():
            parser.error(ABSENT)
        figures = effort_curve()
    elif asked.overlays:
        figures = overlays(asked.runs)
    elif asked.karpenter:
        figures = beside_karpenter(asked.runs)
    elif asked.growth:
        figures = growth(asked.shape, asked.runs, asked.effort)
    else:
        figures = measure(asked.shape, asked.pods, asked.runs, asked.effort)
    if asked.json:
        print(json.dumps(figures))
    else:
        width = max(map(len, figures))
        print("\n".join(f"{name:<{width}}  {value}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
