"""How long a long record takes to be read at a start, and to be cut: in all, and at most at once.

    python -m benchmarks.records.retention [--entries 1000000]

It takes the record of benchmarks/records/fold.py: pods of which nothing is kept, a cut's worst case. It prints JSON.
`without a snapshot` is a start after an upgrade that changed the state's schema. `longest step` is for how long a cut
holds a writer up.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.records.fold import baseline, fill
from kerf.adapters.store.retention import cut as cutting
from kerf.adapters.store.retention.policy import base_at, extent
from kerf.adapters.store.retention.prune import HOLDER
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.settings import Settings
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.load import load


def timed(path: Path, *, use_snapshots: bool = True) -> float:
    """Seconds until the state at the end is there."""
    began = time.perf_counter()
    store = SQLiteStore(path, "read")
    load(store, use_snapshots=use_snapshots)
    store.close()
    return round(time.perf_counter() - began, 3)


def cut_half(path: Path, entries: int) -> dict[str, Any]:
    """What cutting the older half takes, step by step."""
    store = SQLiteStore(path, "write")
    began = time.perf_counter()
    base = base_at(store, entries // 2)
    announced = cutting.propose(store, base)
    proposed = time.perf_counter() - began
    runtime = Runtime(store, holder=HOLDER, settings=Settings(), record="r" * 32, engine="0", now=0)
    runtime.turn([Observation(announced)], 0)
    cutting.begin(store, runtime.state.facts.cut)
    longest, steps, last = 0.0, 0, time.perf_counter()
    began = last
    for _ in cutting.steps(store):
        now = time.perf_counter()
        longest, steps, last = max(longest, now - last), steps + 1, now
    removed = time.perf_counter() - began
    found = extent(store)
    store.close()
    return {
        "base and announcement, seconds": round(proposed, 3),
        "removal, seconds": round(removed, 3),
        "steps": steps,
        "longest step, seconds": round(longest, 4),
        "size after, bytes": found.size,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=1_000_000)
    entries = parser.parse_args().entries
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.kerf"
        store = SQLiteStore(path, "create")
        fill(store, entries)
        store.close()
        before = path.stat().st_size
        starts = {"from a snapshot": timed(path), "without a snapshot": timed(path, use_snapshots=False)}
        cut = cut_half(path, entries)
        starts["without a snapshot, from the base"] = timed(path, use_snapshots=False)
        after = path.stat().st_size
    print(
        json.dumps(
            {
                "entries": entries,
                "seconds until the state is there": starts,
                "a cut of the older half": cut,
                "file, bytes": {"before": before, "after": after},
                "baseline": {"additions_per_second": baseline()},
            },
            indent=1,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
