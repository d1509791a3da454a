"""How much faster two workers of a Dask cluster sweep than one, client and scheduler included.

    python -m benchmarks.records.sweep [--cells 20] [--days 1] [--workers 1 2]

It prints JSON. Beside the time that passes stands CPU time: of the busiest worker, and of the client and scheduler
together. `expected` is the gain in speed that this CPU time allows on cores that nobody else uses.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import yaml

MORNING = Path(__file__).parents[2] / "docs/examples/simulations/morning.yaml"
AXIS = "nodepool/general.spec.disruption.consolidateAfter"
DASK = [sys.executable, "-m", "dask"]


def plan_of(cells: int) -> str:
    """One configuration less than cells: the unchanged one is always there."""
    values = ", ".join(f"{number}m" for number in range(2, cells + 1))
    return f"grid: {{after: {{set: {AXIS}, to: [{values}]}}}}\n"


def shop(days: int) -> str:
    """The morning of docs/examples, day after day, with a larger shop."""
    actions = []
    for hour in range(0, 24 * days, 4):
        steps = ((0, 72), (45, 20), (90, 110), (150, 48), (200, 14))
        actions += [
            {"at": f"{60 * hour + minute}m", "action": "scale", "name": "web", "replicas": replicas}
            for minute, replicas in steps
        ]
        actions.append({"at": f"{60 * hour + 100}m", "action": "interrupt", "capacityType": "spot"})
    documents = [document for document in yaml.safe_load_all(MORNING.read_text()) if document["kind"] != "Timeline"]
    timeline = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "days"}}
    return yaml.safe_dump_all([*documents, {**timeline, "spec": {"actions": actions}}])


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def begun(folder: Path, workers: int) -> list[subprocess.Popen[bytes]]:
    """A scheduler and so many workers."""
    told = folder / "scheduler.json"
    begin = [*DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
    with (folder / "log").open("wb") as log:
        started = [subprocess.Popen([*begin, "--scheduler-file", str(told)], stdout=log, stderr=log)]
        while not told.exists():
            time.sleep(0.1)
        worker = [*DASK, "worker", "--scheduler-file", str(told), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        for number in range(workers):
            place = ["--local-directory", str(folder / f"worker-{number}")]
            started.append(subprocess.Popen([*worker, *place], stdout=log, stderr=log))
    return started


def swept(folder: Path, record: Path, plan: Path, workers: int) -> dict[str, Any]:
    """Sweep on a cluster of its own, and measure."""
    folder.mkdir()
    started = begun(folder, workers)
    try:
        time.sleep(15)  # the workers are there, and have imported what they need to say so
        before = [cpu_of(process) for process in started]
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        command = [sys.executable, "-m", "kerf", "sweep", str(plan), str(record), "--out", str(folder / "out")]
        began, children = time.perf_counter(), psutil.Process().cpu_times()
        subprocess.run([*command, "--on", address], check=True, stdout=subprocess.DEVNULL)
        passed, after = time.perf_counter() - began, psutil.Process().cpu_times()
        used = [cpu_of(process) - was for process, was in zip(started, before, strict=True)]
    finally:
        for process in started:
            process.terminate()
            process.wait()
    client = after.children_user + after.children_system - children.children_user - children.children_system
    return {
        "seconds": passed,
        "busiest worker": max(used[1:]),
        "all workers": sum(used[1:]),
        "serial": client + used[0],
    }


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        record, plan = Path(scratch) / "record.kerf", Path(scratch) / "plan.yaml"
        plan.write_text(plan_of(arguments.cells))
        manifests = Path(scratch) / "shop.yaml"
        manifests.write_text(shop(arguments.days))
        simulate = [sys.executable, "-m", "kerf", "simulate", str(manifests), "--until", f"{24 * arguments.days}h"]
        subprocess.run([*simulate, "--record", str(record), "--quiet"], check=True, stdout=subprocess.DEVNULL)
        found = {str(n): swept(Path(scratch) / f"{n}", record, plan, n) for n in arguments.workers}
    first, last = found[str(arguments.workers[0])], found[str(arguments.workers[-1])]
    expected = [run["busiest worker"] + run["serial"] for run in (first, last)]
    return {
        "cells": arguments.cells,
        "CPU seconds a cell": round(first["all workers"] / arguments.cells, 2),
        "workers": {n: {name: round(value, 1) for name, value in run.items()} for n, run in found.items()},
        "gain": round(first["seconds"] / last["seconds"], 2),
        "expected": round(expected[0] / expected[1], 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    print(json.dumps(measure(parser.parse_args()), indent=2))
