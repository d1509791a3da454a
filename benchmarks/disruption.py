"""How fast a fleet becomes cheap after a scale-in (virtual time), and what a disruption pass costs (CPU time).

    python benchmarks/disruption.py [--budget 10%] [--nodes 1000] [--pods 20] [--json]

The scale-in is that of ten Deployments from 50 to 15 replicas at once (workloads/disruption.py), in a simulated cluster
whose nodes take half a minute to come and to go. `course` is [seconds after it, USD per hour of all NodeClaims, number
of these]; `mean_price` is over the first 414 seconds (the reference's course on a control plane ends there),
`end_price` when nothing changes any more; `evictions` are of pods. A pass is measured with nothing to do and with
half-filled nodes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.workloads.disruption import many_nodes, scale_in
from kerf.adapters.kwok.catalogue import built_in
from kerf.adapters.simulation.driver import Driver
from kerf.adapters.simulation.scenario import START, build_simulation
from kerf.engine.disruption.passes import look
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim import events as ev
from kerf.engine.runtime.runtime import Runtime
from tests.support.memory import MemoryStore

AT, MINUTE = 10, 60_000
WATCHED = 414
"""Seconds after the scale-in."""


def convergence(budget: str) -> dict[str, Any]:
    store = MemoryStore()
    simulation = build_simulation(scale_in(f"{AT}m", budget), catalogue=built_in(), seed=1)

    def office(now: int) -> Runtime:
        return Runtime(store, holder="benchmark", settings=Settings(), record="r", engine="e", now=now)

    driver = Driver(simulation, office)
    driver.run(START + AT * MINUTE - 1)
    began = time.process_time()
    driver.run(START + 40 * MINUTE)
    cpu = time.process_time() - began
    course, evictions = _course(store)
    prices = [next(price for at, price, _ in reversed(course) if at <= second) for second in range(WATCHED)]
    return {
        "budget": budget,
        "before": course[0][1:],
        "mean_price": round(sum(prices) / WATCHED, 3),
        "end_price": course[-1][1],
        "still_after": course[-1][0],
        "evictions": evictions,
        "cpu_seconds": round(cpu, 2),
        "course": course,
    }


def _course(store: MemoryStore) -> tuple[list[tuple[float, float, int]], int]:
    prices: dict[str, float] = {}
    course: list[tuple[float, float, int]] = []
    evictions = 0
    for entry in store.scan():
        after = (entry.at - START) / 1000 - AT * 60
        evictions += after >= 0 and isinstance(entry.payload, ev.PodEvicted)
        if isinstance(entry.payload, ev.Launched):
            prices[entry.payload.claim] = entry.payload.price
        elif isinstance(entry.payload, ev.Terminated | ev.InstanceVanished):
            prices.pop(entry.payload.claim, None)
        else:
            continue
        course = [each for each in course if each[0] != max(after, 0.0)]
        course.append((max(after, 0.0), round(sum(prices.values()), 3), len(prices)))
    return course, evictions


def passes(nodes: int, pods: int) -> dict[str, Any]:
    found: dict[str, Any] = {"nodes": nodes, "pods": nodes * pods}
    for name, still in (("nothing_to_do", True), ("half_filled", False)):
        state, now = many_nodes(nodes, pods, still=still)
        look(state, now)  # compiles the catalogue
        began = time.process_time()
        result = look(state, now)
        found[name] = {"cpu_seconds": round(time.process_time() - began, 3), "moves": len(result.proposed)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", action="append")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="one line")
    options = parser.parse_args()
    made = {
        "convergence": [convergence(budget) for budget in options.budget or ("10%", "100%")],
        "pass": passes(options.nodes, options.pods),
    }
    print(json.dumps(made) if options.json else json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
