"""How fast a fleet becomes cheap after a scale-in (virtual time), and what disruption costs (CPU time).

    python benchmarks/disruption.py [scale-in] [pass] [wave] [scale-ins] [mixes] [--budget 10%] [--nodes 1000]
        [--days 1] [--seeds 16] [--first 1] [--minutes 10] [--json]

`scale-in`: the workload that the reference was measured with (workloads/disruption.py), on nodes that start as fake
ones do. `course` is [seconds after it, USD per hour of all NodeClaims, number of these], `floor` the cheapest fleet
that the planner finds at its highest effort for the pods that stay, `over_floor` what was paid above it in 414 seconds
(the reference's course ends there), in USD per hour times seconds, with the reference's beside it; `evictions` are of
pods, `second_moves` those of pods that had been moved already.

`pass`: one disruption pass with nothing to do, and with half-filled nodes. `wave`: days of a cluster whose pods come in
the morning and go in the evening, of about 200 nodes by day; `launches` and `evictions` per day.

`scale-ins`, `mixes`: one course says little, since dice choose which pods a ReplicaSet deletes and where kube-scheduler
puts others. So these sum up many, one for each seed: of the same scale-in, `--minutes` after the start, the 414 seconds
after it; of random clusters (workloads/mixes.py) two days. `cost` is USD, of scale-ins USD per hour. Two processes take
half of the seeds each; `each` is (seed, cost, evictions).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.workloads.disruption import AS_KWOK, REFERENCE, after_scale_in, daily_wave, many_nodes, scale_in
from benchmarks.workloads.mixes import DAYS as MIX_DAYS
from benchmarks.workloads.mixes import random_mix
from kerf.adapters.kwok.catalogue import built_in
from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.driver import Driver
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.disruption.disruption_pass import run_pass
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.settings import Settings
from kerf.engine.record import claim_events as ev
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.problem.from_state import problem_of
from tests.support.memory import MemoryStore

PARTS = ("scale-in", "pass", "wave", "scale-ins", "mixes")
AT, MINUTE, DAY = 10, 60_000, 86_400_000
WATCHED = 414
"""Seconds after the scale-in."""
HIGHEST = 5_000
"""Search steps; more find nothing cheaper for these pods."""
TARGETS = {"scale-in": "10 %: a third of the reference's over_floor; 100 %: the floor within 60 s", "wave": 60.0,
           "pass": {"nothing_to_do": 0.05, "half_filled": {1_000: 2.0, 5_000: 15.0}}}  # fmt: skip
"""CPU seconds, but for the scale-in; those of a wave for a week of 200 nodes."""

Course = list[tuple[float, float, int]]


def cluster(documents: list[dict[str, Any]], store: MemoryStore, seed: int = 1) -> Driver:
    """As `kerf run` is by default: pods are told their nodes."""
    settings = Settings(nominations=True)
    simulation = build_simulation(documents, catalogue=built_in(), seed=seed, timing=AS_KWOK, settings=settings)

    def office(now: int) -> Runtime:
        return Runtime(store, holder="benchmark", settings=settings, record="r", engine="e", now=now)

    return Driver(simulation, office)


def convergence(budget: str) -> dict[str, Any]:
    store = MemoryStore()
    driver = cluster(scale_in(f"{AT}m", budget), store)
    driver.run(START + AT * MINUTE - 1)
    before = time.process_time()
    driver.run(START + (AT + 20) * MINUTE)
    cpu = time.process_time() - before
    began = START + AT * MINUTE
    course = _course(store, began)
    least, theirs = floor(), [(float(at), price) for at, price in REFERENCE]
    own = [(at, price) for at, price, _ in course]
    return {
        "budget": budget,
        "floor": round(least, 3),
        "over_floor": round(_over(own, least), 1),
        "reference_over_floor": round(_over(theirs, least), 1),
        "at_floor_after": next((at for at, price in own if price <= least + 5e-4), None),
        "end_price": course[-1][1],
        "still_after": course[-1][0],
        **_disturbance(store, began),
        "cpu_seconds": round(cpu, 2),
        "course": course,
    }


def floor() -> float:
    """USD per hour."""
    driver = cluster(after_scale_in(), MemoryStore())
    driver.run(START + 500)
    assert isinstance(driver.runtime, Runtime)
    made = best_plan(problem_of(driver.runtime.state, START + 500), HIGHEST)
    return sum(claim.price for claim in made.claims)


def _over(course: list[tuple[float, float]], least: float, until: float = WATCHED) -> float:
    """A price holds until the next one is seen."""
    seen = [point for point in course if point[0] <= until]
    ends = [*(at for at, _ in seen[1:]), float(until)]
    return sum((end - at) * (price - least) for (at, price), end in zip(seen, ends, strict=True))


def _disturbance(store: MemoryStore, began: int) -> dict[str, int]:
    """What it costs from then on besides money. A pod that came after it and is evicted is moved a second time."""
    came = {entry.payload.uid: entry.payload.created for entry in store.scan() if isinstance(entry.payload, Pod)}
    later = [entry.payload for entry in store.scan() if entry.at >= began]
    evicted = [payload.uid for payload in later if isinstance(payload, ev.PodEvicted)]
    return {
        "evictions": len(evicted),
        "second_moves": sum(came[uid] >= began for uid in evicted),
        "launches": sum(isinstance(payload, ev.Requested) for payload in later),
    }


def _course(store: MemoryStore, began: int) -> Course:
    prices: dict[str, float] = {}
    course: Course = []
    for entry in store.scan():
        after = (entry.at - began) / 1000
        if isinstance(entry.payload, ev.Launched):
            prices[entry.payload.claim] = entry.payload.price
        elif isinstance(entry.payload, ev.Terminated | ev.InstanceVanished):
            prices.pop(entry.payload.claim, None)
        else:
            continue
        course = [point for point in course if point[0] != max(after, 0.0)]
        course.append((max(after, 0.0), round(sum(prices.values()), 3), len(prices)))
    return course


def passes(nodes: int, pods: int, catalogue: Catalogue | None = None, instance_type: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"nodes": nodes, "pods": nodes * pods}
    for name, still in (("nothing_to_do", True), ("half_filled", False)):
        state, now = many_nodes(nodes, pods, still=still, catalogue=catalogue, instance_type=instance_type)
        run_pass(state, now)  # compiles the catalogue
        began = time.process_time()
        result = run_pass(state, now)
        found[name] = {"cpu_seconds": round(time.process_time() - began, 3), "moves": len(result.proposed)}
        began = time.process_time()
        cluster_of(state, now)
        found[name]["of_these_cluster"] = round(time.process_time() - began, 3)
    return found


def wave(days: int, low: int, high: int) -> dict[str, Any]:
    store = MemoryStore()
    driver = cluster(daily_wave(days, low, high), store)
    began = time.process_time()
    driver.run(START + days * DAY)
    cpu = time.process_time() - began
    launched, evicted, nodes, most = Counter[int](), Counter[int](), 0, 0
    for entry in store.scan():
        day = (entry.at - START) // DAY
        launched[day] += isinstance(entry.payload, ev.Launched)
        evicted[day] += isinstance(entry.payload, ev.PodEvicted)
        nodes += isinstance(entry.payload, ev.Launched) - isinstance(entry.payload, ev.Terminated)
        most = max(most, nodes)
    return {
        "days": days,
        "pods": [10 * low, 10 * high],
        "most_nodes": most,
        "launches": [launched[day] for day in range(days)],
        "evictions": [evicted[day] for day in range(days)],
        "cpu_seconds": round(cpu, 1),
    }


def one_scale_in(budget: str, minutes: int, seed: int) -> dict[str, float]:
    began = START + minutes * MINUTE
    found = _sums(scale_in(f"{minutes}m", budget), seed, began, WATCHED)
    return {**found, "cost": found["cost"] * 3_600 / WATCHED}


def one_mix(budget: str, seed: int) -> dict[str, float]:
    found = _sums(random_mix(seed, budget), seed, START, MIX_DAYS * DAY / 1000)
    return {name: value for name, value in found.items() if name != "second_moves"}  # all pods came since the start


def _sums(documents: list[dict[str, Any]], seed: int, began: int, seconds: float) -> dict[str, float]:
    """Of so many seconds from `began` on: `cost` in USD."""
    store = MemoryStore()
    before = time.process_time()
    cluster(documents, store, seed).run(began + round(seconds * 1000))
    cpu = time.process_time() - before
    paid = _over([(at, price) for at, price, _ in _course(store, began)], 0.0, seconds)
    return {"cost": paid / 3_600, **_disturbance(store, began), "cpu_seconds": cpu}


def summed(one: Callable[[int], dict[str, float]], seeds: range) -> dict[str, Any]:
    with ProcessPoolExecutor(2) as processes:
        each = list(processes.map(one, seeds))
    sums = {name: round(sum(found[name] for found in each), 2) for name in each[0]}
    return {**sums, "each": [(seed, round(f["cost"], 2), f["evictions"]) for seed, f in zip(seeds, each, strict=True)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; the first two if none is named")
    parser.add_argument("--budget", action="append")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=20, help="on each node")
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--replicas", type=int, nargs=2, default=(70, 170), help="of each Deployment: by night, by day")
    parser.add_argument("--seeds", type=int, default=16, help="how many scale-ins and mixes")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--minutes", type=int, default=AT, help="from the start to each of the scale-ins")
    parser.add_argument("--json", action="store_true", help="one line")
    options = parser.parse_args()
    if unknown := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    parts = options.parts or PARTS[:2]
    made: dict[str, Any] = {"targets": TARGETS}
    if "scale-in" in parts:
        made["scale-in"] = [convergence(budget) for budget in options.budget or ("10%", "100%")]
    if "pass" in parts:
        made["pass"] = passes(options.nodes, options.pods)
    if "wave" in parts:
        made["wave"] = wave(options.days, *options.replicas)
    seeds, (budget, *_) = range(options.first, options.first + options.seeds), options.budget or ("10%",)
    if "scale-ins" in parts:
        made["scale-ins"] = summed(partial(one_scale_in, budget, options.minutes), seeds)
    if "mixes" in parts:
        made["mixes"] = summed(partial(one_mix, budget), seeds)
    print(json.dumps(made) if options.json else json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
