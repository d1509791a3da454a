"""How soon a long record answers, and how fast it is decided again.

    python -m benchmarks.replay [--entries 1000000] [--long 0] [--decided 100000] [--moments 8] [--folder DIR]

The records are those of `benchmarks/records/long_record.py`: a day of 500 nodes is a million entries. `--long 10000000`
also asks for the state at moments of a longer one, `--decided` is how long the record is that is verified (a day takes
minutes). Commands run in processes of their own, with everything that a user waits for; figures are seconds of wall
time, and of CPU time in all processes. On a machine that does other work, compare CPU times.

`first opening` is `kerf status` of a bundle that was just exported; `without snapshots` the same of one as an older
kerf made it. `first question` is the first `kerf explain`, which makes the index of names. `small decisions` are those
of a record of 20 nodes. It prints JSON, and ends with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from benchmarks.records.fold import baseline
from benchmarks.records.long_record import FOLDER, MILLION, record_of
from kerf.adapters.store.files import bundle_snapshots
from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.open import open_record
from kerf.engine.state.load import load

SMALL = 20_000
MEGABYTE = 1_000_000


class Figure(Struct):
    """What was measured. `met` is None where there is no target."""

    value: float
    target: float | None = None
    cpu: float | None = None
    met: bool | None = None


def below(value: float, target: float | None = None, cpu: float | None = None) -> Figure:
    return Figure(round(value, 2), target, cpu and round(cpu, 2), None if target is None else value < target)


def at_least(value: float, target: float | None = None) -> Figure:
    return Figure(round(value, 2), target, None, None if target is None else value >= target)


def command(*arguments: object, target: float | None = None) -> tuple[Figure, bytes]:
    """Runs `kerf` with these arguments. Raises SystemExit when it fails."""
    began, before = time.perf_counter(), os.times()
    done = subprocess.run([sys.executable, "-m", "kerf", *map(str, arguments)], capture_output=True, check=False)
    took, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(f"kerf {arguments} failed:\n{done.stderr.decode()}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return below(took, target, cpu), done.stdout


def without_snapshots(source: Path, bundle: Path) -> None:
    """Exports a bundle as a kerf did that kept none."""
    spacing, bundle_snapshots.SPACING = bundle_snapshots.SPACING, sys.maxsize
    store = open_record(source)
    export_bundle(store, bundle)
    store.close()
    bundle_snapshots.SPACING = spacing


def of_the_day(record: Path, folder: Path) -> dict[str, Figure]:
    """The commands of an incident on a day's record and its bundle."""
    bundle, old = folder / "day.kerfb", folder / "old.kerfb"
    exported, _ = command("bundle", "export", record, bundle)
    found = {
        "bundle export, s": exported,
        "bundle, MB": below(bundle.stat().st_size / MEGABYTE, 30),
        "first opening of the bundle, s": command("status", bundle, target=20)[0],
    }
    without_snapshots(record, old)
    found["first opening without snapshots, s"] = command("status", old, target=20)[0]
    state = load(BundleStore(bundle))
    pod = sorted(pod.key for pod in state.facts.pods.values() if pod.namespace == "default")[0]
    for name, of in (("bundle", bundle), ("record", record)):
        found[f"status of the {name}, s"] = command("status", of, target=3)[0]
        found[f"cost --by hour of the {name}, s"] = command("cost", of, "--by", "hour", target=5)[0]
        found[f"first question about the {name}, s"] = command("explain", of, pod)[0]
        found[f"explain pod of the {name}, s"] = command("explain", of, pod, target=3)[0]
        found[f"story of the {name}, s"] = command("story", of, pod, target=3)[0]
        found[f"log --subject of the {name}, s"] = command("log", of, "--subject", pod, target=3)[0]
    return found


def moments(record: Path, count: int, target: float) -> Figure:
    """The slowest of some moments, each of a store that was just opened."""
    dice, slowest, cpu = random.Random(1), 0.0, 0.0
    for _ in range(count):
        began, used = time.perf_counter(), time.process_time()
        store = open_record(record)
        load(store, dice.randint(1, store.last_position()))
        store.close()
        slowest = max(slowest, time.perf_counter() - began)
        cpu = max(cpu, time.process_time() - used)
    return below(slowest, target, cpu)


def decided(record: Path, jobs: int) -> dict[str, Figure]:
    """`kerf verify` by one process and by several, which must say the same."""
    alone, said = command("verify", record, "--jobs", 1, "--json")
    together, as_said = command("verify", record, "--jobs", jobs, "--json")
    reports = [json.loads(one) | {"seconds": 0} for one in (said, as_said)]
    if reports[0] != reports[1]:
        raise SystemExit("the reports of one process and of several differ")
    return {
        "verify by one process, s": alone,
        f"verify by {jobs} processes, s": together,
        "verify, entries/s by one process": at_least(reports[0]["entries"] / (alone.cpu or 1)),
        "verify, times as fast by several": at_least(alone.value / together.value),
    }


def measure(given: argparse.Namespace) -> dict[str, Any]:
    began, used = time.perf_counter(), time.process_time()
    day = record_of(given.entries, given.folder)
    found = {"record made or found, s": below(time.perf_counter() - began, 900, time.process_time() - used)}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # where no index is yet
        found |= of_the_day(day, Path(folder))
    found[f"state at any moment of {given.entries:,} entries, s"] = moments(day, given.moments, 2)
    if given.long:
        longer = record_of(given.long, given.folder)
        found[f"state at any moment of {given.long:,} entries, s"] = moments(longer, given.moments, 2)
    found |= decided(record_of(given.decided, given.folder), given.jobs)
    small, said = command("verify", record_of(SMALL, given.folder), "--jobs", 1, "--json")
    rate = json.loads(said)["decisions"] / (small.cpu or 1)
    found["small decisions/s/core"] = at_least(rate, 500)
    return {
        "figures": to_builtins(found),
        "entries": given.entries,
        "decided": given.decided,
        "machine": {
            "cpus": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version(),
            "additions_per_second": baseline(),
        },
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=MILLION)
    parser.add_argument("--long", type=int, default=0)
    parser.add_argument("--decided", type=int, default=100_000)
    parser.add_argument("--moments", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    result = measure(parser.parse_args())
    print(json.dumps(result, indent=1))
    return 0 if all(figure["met"] is not False for figure in result["figures"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
