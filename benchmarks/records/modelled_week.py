"""How long a week of 200 nodes takes in a model, on each core.

    python -m benchmarks.records.modelled_week [--days 7]

The record is the wave of `benchmarks/disruption.py`: 1,700 pods by day, 700 by night. `kerf replay` asks what it had
been with another consolidateAfter. Its two runs go on side by side, so a core's share is half of the CPU time. With
fewer days, `week_a_core` is what seven of them would take. `errors` are how far the model is from the record without
the change, as shares. It prints JSON, and ends with 1 where the week takes 60 s or more, or an error is over a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.disruption import DAY, cluster
from benchmarks.workloads.disruption import daily_wave
from kerf.adapters.simulation.build import START
from kerf.replay.modelled.comparison import MOST
from tests.support.memory import MemoryStore
from tests.support.records import stored

WANTED = 60.0
"""CPU seconds of each core, for a week."""
CHANGE = "nodepool/default.spec.disruption.consolidateAfter=5m"


def measure(days: int) -> dict[str, Any]:
    memory = MemoryStore()
    cluster(daily_wave(days, 70, 170), memory).run(START + days * DAY)
    with tempfile.TemporaryDirectory() as folder:
        record = stored(Path(folder) / "wave.kerf", memory)
        asked = ["replay", str(record), "--set", CHANGE, "--jobs", "2", "--anyway", "--json"]
        command = [sys.executable, "-m", "kerf", *asked]
        before = os.times()
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "days": days,
        "entries": memory.last_position(),
        "errors": json.loads(done.stdout)["errors"],
        "cpu_seconds": round(cpu, 1),
        "week_a_core": round(cpu / 2 * 7 / days, 1),
        "wanted": WANTED,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=7)
    found = measure(parser.parse_args().days)
    print(json.dumps(found, indent=1))
    return int(found["week_a_core"] >= WANTED or max(found["errors"].values()) > MOST)


if __name__ == "__main__":
    sys.exit(main())
