"""What the optimizer's effort buys: prices and CPU at several efforts (issue 14, point 11).

    python -m benchmarks.effort.curve [--efforts 0 10 25 50 100 200] [--part PART ...] [--every 8] [--svg FILE]

`nominated` plans one in `--every` scenarios of the large conformance set as where pods are told their nodes,
`not_nominated` as where they are not. `price` is the sum of all plans (USD per hour), `gained` how much less that is
than at the first effort, in percent, `mean_gained` the same for the mean scenario, `cpu` what planning took (seconds).

`week` simulates seven days of ten Deployments whose pods come in the morning and go in the evening (`--replicas`: of
each, by night and by day). `paid` is what the nodes cost in the week (USD), `passes_cpu` what its provisioning passes
took, `cpu` the whole simulation (seconds); `evictions` and `launches` are of the week.

Prints one JSON object. `--svg` draws the gain against the CPU. Planning twice gives the same plans; only the seconds
differ.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from benchmarks.effort.chart import Line, drawn
from benchmarks.workloads.disruption import AS_KWOK, daily_wave
from kerf.adapters.kwok.catalogue import built_in
from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.driver import Driver
from kerf.engine.model.settings import Settings
from kerf.engine.record import claim_events as ev
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.scheduling import provision as provisioning
from kerf.engine.scheduling.optimizer.alternative_plans import total_price
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.problem.problem import Problem
from kerf.replay.scenarios.plan_scenarios import problem_of, read_catalogues, read_scenarios
from tests.conformance.large_set import LARGE_SET
from tests.support.memory import MemoryStore

EFFORTS = 0, 10, 25, 50, 100, 200
WAYS = {"nominated": True, "not_nominated": False}
PARTS = *WAYS, "week"
DAYS, HOUR = 7, 3_600_000

Row = dict[str, float]
"""The figures at one effort."""


def curves(parts: Sequence[str], efforts: Sequence[int], every: int, replicas: tuple[int, int]) -> dict[str, list[Row]]:
    """The rows of each curve, by its name."""
    found: dict[str, list[Row]] = {}
    problems = list(_problems(every)) if any(part in WAYS for part in parts) else []
    for name in (part for part in WAYS if part in parts):
        asked = [replace(given, settings=replace(given.settings, nominations=WAYS[name])) for given in problems]
        found[name] = with_gain(planned(asked, efforts), "price")
    if "week" in parts:
        found["week"] = with_gain([week(effort, *replicas) for effort in efforts], "paid")
    return found


def with_gain(rows: list[Row], price: str) -> list[Row]:
    """The rows with `gained`: by how many percent the price is lower than in the first row."""
    return [{**row, "gained": round(100 * (1 - row[price] / rows[0][price]), 2)} for row in rows]


# ── scenarios ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _problems(every: int) -> Iterator[Problem]:
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    for number, scenario in enumerate(read_scenarios(LARGE_SET / "scenarios.jsonl")):
        if number % every == 0 and isinstance(scenario, dict):
            yield problem_of(scenario, catalogues)


def planned(problems: Sequence[Problem], efforts: Sequence[int]) -> list[Row]:
    """A row for each effort."""
    rows: list[Row] = []
    first: list[float] = []
    for effort in efforts:
        began = time.process_time()
        prices = [total_price(best_plan(problem, effort).claims) for problem in problems]
        cpu = time.process_time() - began
        first = first or prices
        gains = [1 - price / before for price, before in zip(prices, first, strict=True) if before]
        rows.append(
            {
                "effort": effort,
                "price": round(math.fsum(prices), 4),
                "mean_gained": round(100 * math.fsum(gains) / len(gains), 2),
                "cpu": round(cpu, 2),
            }
        )
    return rows


# ── a week ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def week(effort: int, by_night: int, by_day: int) -> Row:
    """A simulated week in which each provisioning pass has this effort."""
    store = MemoryStore()
    simulation = build_simulation(daily_wave(DAYS, by_night, by_day), catalogue=built_in(), seed=1, timing=AS_KWOK)
    settings = Settings(effort=effort, nominations=True)

    def office(now: int) -> Runtime:
        return Runtime(store, holder="benchmark", settings=settings, record="r", engine="e", now=now)

    began, end = time.process_time(), START + DAYS * 24 * HOUR
    with _passes_timed() as passes:
        Driver(simulation, office).run(end)
    counted = Counter(type(entry.payload).__name__ for entry in store.scan())
    return {
        "effort": effort,
        "paid": round(paid(store, end), 2),
        "passes_cpu": round(sum(passes), 2),
        "cpu": round(time.process_time() - began, 1),
        "launches": counted["Launched"],
        "evictions": counted["PodEvicted"],
    }


def paid(store: MemoryStore, end: int) -> float:
    """What all nodes cost until `end` (ms since the epoch), USD."""
    total, running = 0.0, dict[str, tuple[int, float]]()
    for entry in store.scan():
        if isinstance(entry.payload, ev.Launched):
            running[entry.payload.claim] = entry.at, entry.payload.price
        elif isinstance(entry.payload, ev.Terminated | ev.InstanceVanished) and entry.payload.claim in running:
            since, price = running.pop(entry.payload.claim)
            total += price * (entry.at - since) / HOUR
    return total + sum(price * (end - since) / HOUR for since, price in running.values())


@contextmanager
def _passes_timed() -> Iterator[list[float]]:
    """Notes the CPU seconds of each provisioning pass."""
    spent: list[float] = []
    provision = provisioning.provision

    def timed(*asked: Any) -> Any:
        began = time.process_time()
        made = provision(*asked)
        spent.append(time.process_time() - began)
        return made

    with patch.object(provisioning, "provision", timed):
        yield spent


def main() -> int:
    text = __doc__ or ""
    parser = argparse.ArgumentParser(
        description=text.partition("\n")[0],
        epilog=text.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--efforts", type=int, nargs="+", default=EFFORTS)
    parser.add_argument("--part", choices=PARTS, action="append", help="one part alone")
    parser.add_argument("--every", type=int, default=8, help="one in so many scenarios")
    parser.add_argument("--replicas", type=int, nargs=2, default=(20, 50), help="of each Deployment: by night, by day")
    parser.add_argument("--svg", type=Path, help="a file for the drawing")
    asked = parser.parse_args()
    if asked.every < 1:
        parser.error("--every is at least 1")
    found = curves(asked.part or PARTS, asked.efforts, asked.every, tuple(asked.replicas))
    if asked.svg is not None:
        lines = [Line(name, [(row["effort"], row["gained"]) for row in rows]) for name, rows in found.items()]
        asked.svg.write_text(drawn(lines, "effort (steps)", "% cheaper"))
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
