"""How fast the state is folded, and how soon the state of any moment of a long record is there.

    python benchmarks/records/fold.py [--json] [--entries 1000000] [--moments 20]

The record is made as the runtime makes it: turns of some hundred watch events over 5,000 pods and 200 nodes, with a
snapshot every `SNAPSHOT_EVERY` entries. `state at` is the slowest of some moments spread over the record, each from a
store that was just opened; the page cache is warm.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, stream_of
from kerf.engine.record.store import Append
from kerf.engine.runtime.runtime import SNAPSHOT_EVERY
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import load
from kerf.engine.state.state import Facts, State

TARGETS = {"fold of decoded entries, per second": 500_000.0, "state at any moment, seconds": 1.0}
AT = 1_700_000_000_000
BATCH = 500
PODS, NODES = 5_000, 200
SHAPE, SHAPE_BYTES = content(PodShape(requests={"cpu": 250, "memory": 1 << 28}))


def pod(number: int) -> Pod:
    """The life of a pod, one watch event at a time: waits, is bound, runs, is ready."""
    index, step = number % PODS, number // PODS % 4
    return Pod(
        f"uid-{index}", "shop", f"web-{index}", SHAPE, created=AT,
        phase="Pending" if step < 2 else "Running", node="" if step == 0 else f"node-{index % NODES}",
        unschedulable=step == 0, ready=step == 3,
    )  # fmt: skip


def entries(first: int, count: int) -> tuple[Entry, ...]:
    name = NAME_OF[Pod]
    return tuple(
        Entry(i, first, stream_of(pod(i)), i, name, 1, AT + i, 0, 1, pod(i)) for i in range(first, first + count)
    )


def fill(store: SQLiteStore, count: int) -> None:
    """Appends and folds `count` entries, with the runtime's snapshots."""
    state = State(Facts(), Blobs(store.blob))
    kept = 0
    for first in range(1, count + 1, BATCH):
        turn = entries(first, min(BATCH, count + 1 - first))
        store.append(Append(turn, {SHAPE: SHAPE_BYTES} if first == 1 else {}))
        for entry in turn:
            evolve(state, entry)
        if state.facts.position - kept >= SNAPSHOT_EVERY:
            kept = state.facts.position
            store.put_snapshot(kept, snapshot.SCHEMA, *snapshot.encode(state))


def decoded_rate(count: int = 300_000) -> float:
    """Entries folded per second, best of three."""
    given = entries(1, count)
    gc.collect()
    gc.freeze()
    best = 0.0
    for _ in range(3):
        state = State(Facts(), Blobs(lambda digest: SHAPE_BYTES))
        began = time.perf_counter()
        for entry in given:
            evolve(state, entry)
        best = max(best, count / (time.perf_counter() - began))
    gc.unfreeze()
    return best


def moments(path: Path, count: int, number: int) -> list[float]:
    """Seconds until the state of each of `number` moments is there."""
    dice = random.Random(1)
    taken = []
    for position in sorted(dice.randint(1, count) for _ in range(number)):
        began = time.perf_counter()
        store = SQLiteStore(path, "read")
        state = load(store, position)
        taken.append(time.perf_counter() - began)
        assert state.facts.position == position
        store.close()
    return taken


def baseline() -> float:
    """Additions per second in a plain Python loop: what the machine is worth at the moment."""
    began = time.perf_counter()
    total = 0
    for i in range(2_000_000):
        total += i & 3
    return 2_000_000 / (time.perf_counter() - began)


def measure(count: int, number: int) -> dict[str, Any]:
    rate = decoded_rate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.kerf"
        store = SQLiteStore(path, "create")
        fill(store, count)
        store.close()
        taken = moments(path, count, number)
        size = path.stat().st_size
    figures = {"fold of decoded entries, per second": rate, "state at any moment, seconds": max(taken)}
    return {
        "figures": figures,
        "targets": TARGETS,
        "entries": count,
        "moments": number,
        "state_at_median_seconds": sorted(taken)[len(taken) // 2],
        "record_bytes": size,
        "snapshot_every": SNAPSHOT_EVERY,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "baseline": {"additions_per_second": baseline(), "python": platform.python_version()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--moments", type=int, default=20)
    given = parser.parse_args()
    result = measure(given.entries, given.moments)
    if given.json:
        print(json.dumps(result, indent=1))
    else:
        for name, figure in result["figures"].items():
            print(f"{name}: {figure:,.3f} (target {TARGETS[name]:,.0f})")
        print(f"baseline: {result['baseline']['additions_per_second']:,.0f} additions/s")
    rate, at = result["figures"].values()
    return 0 if rate >= TARGETS["fold of decoded entries, per second"] and at <= 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
