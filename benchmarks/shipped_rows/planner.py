"""The rows of `shipped.py` that plan pods: how fast, and at what price, the planner answers at the default effort.

Every run asks with pods of other names, so that no answer is one given before; the catalogue stays, as in a controller.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from benchmarks import karpenter
from benchmarks.workloads.scheduling import SHAPES
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem

Row = tuple[dict[str, Any], Callable[[int], dict[str, Any]]]
"""The figures that are wanted, with those of before issue 14 (`today`), and what measures in so many runs."""


@cache
def asked(shape: str, pods: int) -> Problem:
    return SHAPES[shape](pods)


def renamed(problem: Problem, run: int) -> Problem:
    """The problem with pods of other names and uids."""
    pods = tuple(replace(pod, uid=f"{pod.uid}-{run}", name=f"{pod.name}-{run}") for pod in problem.pods)
    return replace(problem, pods=pods)


def planned(shape: str, pods: int, nominations: bool, runs: int) -> dict[str, Any]:
    """CPU seconds of the first plan of a process, and the least of further ones; USD per hour of the plan."""
    settings = Settings(nominations=nominations)
    problem = replace(asked(shape, pods), settings=settings)
    first, plan = _timed(renamed(problem, 0))
    seconds = min(_timed(renamed(problem, run))[0] for run in range(1, runs + 1))
    if len(plan.placed) != pods:
        raise SystemExit(f"{shape}: {pods - len(plan.placed)} pods were not placed")
    return {
        "pods_per_s": round(pods / seconds),
        "cpu_s": round(seconds, 3),
        "first_cpu_s": round(first, 3),
        "nodes": len(plan.claims),
        "price": round(math.fsum(claim.price for claim in plan.claims), 4),
        "first_price": round(plan.first_price, 4),
        "lower_bound": round(plan.lower_bound, 4),
        "unbound": len(plan.unbound) if plan.rated else None,
    }


def _timed(problem: Problem) -> tuple[float, Plan]:
    began = time.process_time()
    plan = best_plan(problem, problem.settings.effort)
    return time.process_time() - began, plan


def beside_karpenter(benchmark: str, pods: int, runs: int) -> dict[str, Any]:
    """Karpenter's own benchmark right after kerf's plan of the same mix, nominated; `ratio` by wall clock."""
    problem = replace(asked("diverse", pods), settings=Settings(nominations=True))
    walls = []
    for run in range(runs + 1):
        question, began = renamed(problem, run), time.perf_counter()
        best_plan(question, question.settings.effort)
        walls.append(time.perf_counter() - began)
    theirs = karpenter.scheduling(benchmark, runs)
    return {"ratio": round(pods / min(walls[1:]) / theirs["pods_per_s"], 1), "karpenter": theirs["pods_per_s"]}


PLANNER_ROWS: dict[str, Row] = {
    "diverse-5000-nominated": (
        {"today": {"pods_per_s": 2_608, "price": 1613.4001}, "pods_per_s": 8_000, "price": 1613.4001},
        partial(planned, "diverse", 5_000, True),
    ),
    "diverse-10000-nominated": (
        {"today": {"pods_per_s": 5_673, "price": 3206.6563}, "pods_per_s": 8_000, "price": 3206.6563},
        partial(planned, "diverse", 10_000, True),
    ),
    "diverse-5000": (
        {"today": {"pods_per_s": 1_118, "price": 1613.4001}, "pods_per_s": 4_000, "price": 1613.4001},
        partial(planned, "diverse", 5_000, False),
    ),
    "diverse-10000": (
        {"today": {"pods_per_s": 2_045, "price": 3206.6563}, "pods_per_s": 4_000, "price": 3206.6563},
        partial(planned, "diverse", 10_000, False),
    ),
    "ec2-1000-nominated": (
        {"today": {"cpu_s": 1.4, "price": 8.5529}, "cpu_s": 0.3, "price": 8.5529},
        partial(planned, "plain-ec2", 1_000, True),
    ),
    "ec2-1000": (
        {"today": {"cpu_s": 3.6, "price": 7.8673}, "cpu_s": 0.8, "price": 7.8673},
        partial(planned, "plain-ec2", 1_000, False),
    ),
    "karpenter-5000": ({"ratio": 40.0}, partial(beside_karpenter, "BenchmarkScheduling5000", 5_000)),
    "karpenter-10000": ({"ratio": 40.0}, partial(beside_karpenter, "BenchmarkScheduling10000", 10_000)),
}
