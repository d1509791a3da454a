"""How fast the record is written and read, with `eventsourcing`'s own Application beside it in the same run.

    python benchmarks/records/record.py [--json] [--entries 200000] [--batch 500] [--folder DIR]

Each figure stands in `FIGURES` as a function of a `Bench` (the folder, the sizes, the record that `append` made) and
returns a rate per second. A figure is the best of some runs: what the code can do when the machine lets it. The
baseline (fsync, a plain Python loop, hashing) says what the machine was worth at the time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape
from kerf.engine.record.codec import CODEC
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, stream_of
from kerf.engine.record.observations import ObjectGone
from kerf.engine.record.store import Append
from kerf.engine.state.load import load

AT = 1_700_000_000_000
APPLICATION_EVENTS = 2_000
NODES = 200
SHAPES = dict(content(PodShape(requests={"cpu": 100 + i, "memory": 1 << 28})) for i in range(300))

TARGETS = {
    "append": 25_000.0,
    "append / application": 10.0,
    "scan": 150_000.0,
    "scan and fold": 150_000.0,
}


class Bench(Struct):
    folder: Path
    entries: list[Entry]
    batch: int
    runs: int

    @property
    def record(self) -> Path:
        return self.folder / "bench.kerf"

    def turns(self) -> Iterator[Append]:
        """The entries in turns; the first one brings the blobs."""
        for first in range(0, len(self.entries), self.batch):
            entries = self.entries[first : first + self.batch]
            turn = tuple(replace(entry, turn=entries[0].position) for entry in entries)
            yield Append(turn, SHAPES if not first else {})


def observations() -> Iterator[Struct]:
    """A cluster at work: each pod is seen pending, bound and ready, and goes."""
    for number in range(NODES):
        yield Node(f"ip-10-0-{number}", uid=f"node-{number}", created=AT, ready=True, allocatable={"cpu": 8000})
    shapes = list(SHAPES)
    number = 0
    while True:
        number += 1
        uid = f"0f6cfa0e-2b53-4b7c-9d6c-{number:012d}"
        owner = Owner("apps/v1/ReplicaSet", f"web-{number % 300}", f"0f6cfa0e-2b53-4b7c-9d6c-{number % 300:012d}")
        pod = Pod(uid, "team-a", f"web-{number:08d}", shapes[number % 300], AT, unschedulable=True, owner=owner)
        bound = replace(pod, node=f"ip-10-0-{number % NODES}", unschedulable=False)
        yield pod
        yield bound
        yield replace(bound, phase="Running", ready=True, started=AT)
        yield ObjectGone("pod", uid)


def entries(count: int) -> list[Entry]:
    made = []
    for position, payload in enumerate(islice(observations(), count), 1):
        made.append(
            Entry(position, 0, stream_of(payload), position, NAME_OF[type(payload)], 1, AT + position, 0, 1, payload)
        )
    return made


def best(runs: int, count: int, run: Callable[[], object]) -> float:
    """The highest rate of some runs, per second."""
    rates = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        rates.append(count / (time.perf_counter() - start))
    return max(rates)


# ── figures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def append(bench: Bench) -> float:
    """Entries per second into a new SQLite record, each turn durable (WAL, synchronous=FULL) before the next."""

    def run() -> None:
        bench.record.unlink(missing_ok=True)
        store = SQLiteStore(bench.record, "create")
        for turn in bench.turns():
            store.append(turn)
        store.close()

    return best(bench.runs, len(bench.entries), run)


def append_one_by_one(bench: Bench) -> float:
    """Entries per second when each is a turn of its own."""
    few = Bench(bench.folder / "single", bench.entries[:APPLICATION_EVENTS], 1, bench.runs)
    few.folder.mkdir(exist_ok=True)
    return append(few)


class Watched(Aggregate):
    """A watched object as an aggregate, the way `eventsourcing` is used by itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    @event("Seen")
    def see(self, observation: dict[str, Any]) -> None:
        self.observation = observation


def application(bench: Bench) -> float:
    """Events per second of `eventsourcing`'s Application on SQLite, one event per save, the same observations."""
    path = bench.folder / "application.db"
    plain = [msgspec.to_builtins(entry.payload) for entry in bench.entries[:APPLICATION_EVENTS]]

    def run() -> None:
        path.unlink(missing_ok=True)
        app: Application[Any] = Application(
            env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
        )
        watched = Watched("pods")
        app.save(watched)
        for observation in plain:
            watched.see(observation)
            app.save(watched)
        app.close()

    return best(bench.runs, len(plain), run)


def encode(bench: Bench) -> float:
    """Entries encoded per second, in memory."""
    return best(bench.runs, len(bench.entries), lambda: [CODEC.encode(entry) for entry in bench.entries])


def read(bench: Bench) -> float:
    """Entries per second read from the file and checked against the chain, not decoded."""
    return _reading(bench, lambda store: sum(1 for _ in store.encoded()))


def scan(bench: Bench) -> float:
    """Entries per second read from the file, checked and decoded."""
    return _reading(bench, lambda store: sum(1 for _ in store.scan()))


def scan_and_fold(bench: Bench) -> float:
    """Entries per second from the file into the state."""
    return _reading(bench, lambda store: load(store, use_snapshots=False))


def _reading(bench: Bench, run: Callable[[SQLiteStore], object]) -> float:
    store = SQLiteStore(bench.record, "read")
    rate = best(bench.runs, len(bench.entries), lambda: run(store))
    store.close()
    return rate


def bundle_export(bench: Bench) -> float:
    """Entries per second from the file into a bundle."""
    path = bench.folder / "bench.kerfb"

    def run(store: SQLiteStore) -> None:
        path.unlink(missing_ok=True)
        export_bundle(store, path)

    return _reading(bench, run)


def bundle_scan(bench: Bench) -> float:
    """Entries per second read from the bundle, checked and decoded."""
    path = bench.folder / "bench.kerfb"
    return best(bench.runs, len(bench.entries), lambda: sum(1 for _ in BundleStore(path).scan()))


FIGURES: dict[str, Callable[[Bench], float]] = {
    "append": append,
    "append one by one": append_one_by_one,
    "application": application,
    "encode": encode,
    "read": read,
    "scan": scan,
    "scan and fold": scan_and_fold,
    "bundle export": bundle_export,
    "bundle scan": bundle_scan,
}

# ── the machine ────────────────────────────────────────────────────────────────────────────────────────────────────


def baseline(folder: Path) -> dict[str, Any]:
    """What the machine is and can do, in the folder that is measured in."""

    def loop() -> int:
        total = 0
        for i in range(1_000_000):
            total += i
        return total

    def fsync() -> None:
        with (folder / "fsync").open("wb") as file:
            for _ in range(100):
                file.write(bytes(4096))
                file.flush()
                os.fsync(file.fileno())

    data = bytes(250)
    return {
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "machine": platform.machine(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "msgspec": msgspec.__version__,
        "eventsourcing": version("eventsourcing"),
        "python additions/s": round(best(3, 1_000_000, loop)),
        "fsync/s": round(best(3, 100, fsync)),
        "blake2b of 250 bytes/s": round(
            best(3, 200_000, lambda: [blake2b(data, digest_size=16).digest() for _ in range(200_000)])
        ),
    }


def measure(bench: Bench) -> dict[str, Any]:
    rates = {name: figure(bench) for name, figure in FIGURES.items()}
    rates["append / application"] = rates["append"] / rates["application"]
    sizes = {path.suffix: path.stat().st_size / len(bench.entries) for path in bench.folder.glob("bench.kerf*")}
    return {
        "machine": baseline(bench.folder),
        "entries": len(bench.entries),
        "batch": bench.batch,
        "bytes per entry": {suffix: round(size, 1) for suffix, size in sorted(sizes.items())},
        "figures": {
            name: {"value": round(rate, 1), "target": TARGETS.get(name), "met": rate >= TARGETS.get(name, 0.0)}
            for name, rate in rates.items()
        },
    }


def show(result: dict[str, Any]) -> Iterator[str]:
    yield "  ".join(f"{key} {value}" for key, value in result["machine"].items())
    yield f"{result['entries']} entries, {result['batch']} a turn, bytes per entry {result['bytes per entry']}"
    for name, figure in result["figures"].items():
        target = f"  target {figure['target']:,.0f}: {'met' if figure['met'] else 'MISSED'}" if figure["target"] else ""
        unit = " times" if "/" in name else "/s"
        yield f"{name:22} {figure['value']:>14,.1f}{unit}{target}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=500, help="entries a turn")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure (default: a temporary one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = measure(Bench(Path(folder), entries(options.entries), options.batch, options.runs))
    sys.stdout.write(json.dumps(result, indent=2) if options.json else "\n".join(show(result)))
    sys.stdout.write("\n")
    return 0 if all(figure["met"] for figure in result["figures"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
