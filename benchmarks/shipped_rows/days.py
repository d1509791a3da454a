"""The rows of `shipped.py` that take days: whole simulations and their `verify`, single turns, and disruption passes
with the Lease meanwhile.

A day is run by `kerf simulate`'s own code into a record, then `kerf verify`'s over that record, which must not differ
in one byte. All seconds are of processor time, but for the Lease's.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.disruption import passes, wave
from benchmarks.large_cluster import measure
from benchmarks.shipped_rows.planner import Row
from benchmarks.workloads.days import Document, large_day, newcomers_day
from kerf.adapters.cli.input.documents import read_documents
from kerf.adapters.cli.simulate.flags import simulation_settings
from kerf.adapters.cli.simulate.market import catalogues
from kerf.adapters.cli.simulate.simulation_run import AFTERWARDS, SimulationRun, last_action
from kerf.adapters.simulation.build import START
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Intent
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.runtime import Runtime
from kerf.replay.verify.verify import verify

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
LONG_TURN = 0.4
"""CPU seconds from which a turn counts as long."""


def day(documents: Callable[[], Sequence[Document]], runs: int, *, verified: bool = True) -> dict[str, Any]:
    """Simulates the documents into a record, and verifies it. Raises SystemExit if a decision differs."""
    with tempfile.TemporaryDirectory() as folder:
        source, record = Path(folder, "day.yaml"), Path(folder, "day.kerf")
        source.write_text("\n---\n".join(map(json.dumps, documents())))
        store = SQLiteStore(record, "create")
        began = time.process_time()
        turns = simulated(source, store)
        found = {"simulate_s": round(time.process_time() - began, 1), **_turns(turns), **_story(store)}
        if verified:
            began = time.process_time()
            report = verify(store)
            found |= {"verify_s": round(time.process_time() - began, 1), "decisions": report.decisions}
            if report.exit_code:
                raise SystemExit(f"verify ended with exit code {report.exit_code}")
        store.close()
    return found


def simulated(source: Path, store: SQLiteStore, hours: float = 0.0) -> list[float]:
    """The CPU seconds of each turn. Without `hours` it ends when `kerf simulate` does without --until."""
    documents = read_documents([source]).named()
    assert not documents.refused, documents.refused
    settings = simulation_settings("", None, nominate=True)
    run = SimulationRun(documents, store, start=START, seed=0, quiet=True, settings=settings)
    turns: list[float] = []
    run.driver._office = _timed(run.driver._office, turns)
    run.go(round(hours * 3_600_000) or last_action(documents.good) + AFTERWARDS)
    report = run.report(None)
    assert not report.refused, report.refused
    return turns


def _timed(office: Callable[[int], Any], turns: list[float]) -> Callable[[int], Any]:
    """Makes runtimes that note the CPU seconds of their turns."""

    def make(now: int) -> Runtime:
        runtime: Runtime = office(now)
        turn = runtime.turn

        def timed(observations: Sequence[Observation], now: int) -> list[tuple[str, Intent]]:
            began = time.process_time()
            made = turn(observations, now)
            turns.append(time.process_time() - began)
            return made

        runtime.turn = timed  # type: ignore[method-assign]
        return runtime

    return make


def _turns(turns: Sequence[float]) -> dict[str, Any]:
    return {
        "turns": len(turns),
        "slowest_turn_s": round(max(turns), 3),
        "mean_turn_s": round(sum(turns) / len(turns), 4),
        "long_turns": sum(turn > LONG_TURN for turn in turns),
    }


def _story(store: SQLiteStore) -> dict[str, Any]:
    nodes = most = 0
    seen = Counter[str]()
    for entry in store.scan():
        seen[type(entry.payload).__name__] += 1
        nodes += isinstance(entry.payload, ev.Launched) - isinstance(entry.payload, ev.Terminated)
        most = max(most, nodes)
    return {"launches": seen["Launched"], "evictions": seen["PodEvicted"], "most_nodes": most}


def _half_filled(runs: int, *, ec2: bool) -> dict[str, Any]:
    catalogue = catalogues("us-west-2", ZONES)(None) if ec2 else None
    found: dict[str, Any] = passes(5_000, 20, catalogue, "m5.2xlarge" if ec2 else "")["half_filled"]
    return found


def _lease(runs: int) -> dict[str, Any]:
    """`kerf run` beside an API server of its own, by wall clock: what else the machine does has its part."""
    found = asyncio.run(measure(5_000, 100_000, 150.0, half_filled=True, explorer=False))
    if not found["pass_s"]:
        raise SystemExit("no pass ended in 150 s")
    return {name: found[name] for name in ("pass_lease_gap_s", "pass_s", "lease_gap_s", "ready_max_s", "passes_s")}


TODAY = {"simulate_s": 101.0, "slowest_turn_s": 1.097, "mean_turn_s": 0.0383, "long_turns": 35}
DAY_ROWS: dict[str, Row] = {
    "newcomers-day": (
        {"today": TODAY, "simulate_s": 15.0, "verify_s": 10.0, "slowest_turn_s": LONG_TURN, "long_turns": 0},
        partial(day, newcomers_day),
    ),
    "large-day": (
        {"today": {}, "slowest_turn_s": 2.0, "mean_turn_s": 0.05},
        partial(day, large_day, verified=False),
    ),
    "week": ({"today": {"cpu_seconds": 56.0}, "cpu_seconds": 20.0}, lambda runs: wave(7, 70, 170)),
    "pass": ({"today": {"cpu_seconds": 6.5}, "cpu_seconds": 4.0}, partial(_half_filled, ec2=False)),
    "ec2-pass": ({"today": {}, "cpu_seconds": 15.0}, partial(_half_filled, ec2=True)),
    "lease": ({"today": {}, "pass_lease_gap_s": 1.0}, _lease),
}
