"""How the explorer follows a record that is written meanwhile, and what its writer notices of it.

    python -m benchmarks.explorer.following [--record FILE] [--before 20000] [--per-second 1000] [--seconds 40]

A process appends the turns of a long record to a new one, so many entries a second. Its loop turns every 20 ms;
`longest gap` is the longest time that it did not: a leader renews its Lease in such a loop. This is measured without
anybody who looks, and with `kerf ui` of the new record in a process of its own and its page open in headless chromium:
it follows the end, and the cursor is dragged again and again. It prints JSON. Needs the extra `ui`, and chromium
(CHROMIUM).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.records.long_record import FOLDER, MILLION, record_of
from benchmarks.ui import CHROMIUM, FIRST, Server, scrubbed, serving
from kerf.adapters.store.open import open_record
from kerf.adapters.store.read_only import blobs_of
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.store import Append

TICK = 0.02
TO_THE_END = "import('./view.js').then(({ change, view }) => change({ at: view.until }))"


def turns_of(record: Path) -> Iterator[Append]:
    known: set[str] = set()
    with closing(open_record(record)) as store:
        for _, turn in groupby(store.scan(), key=lambda entry: entry.turn):
            entries = tuple(turn)
            new = {digest for entry in entries for digest in blobs_of(entry)} - known
            known |= new
            yield Append(entries, {digest: store.blob(digest) for digest in sorted(new)})


def write(source: Path, target: Path, before: int, per_second: int, seconds: float) -> None:
    """Write the beginning at once, say so, and go on when told; then tell what was noticed as JSON."""
    turns = turns_of(source)
    with closing(SQLiteStore(target, "create")) as store:
        written = _append(store, turns, before)
        print("ready", flush=True)
        sys.stdin.readline()
        first, began, longest, slowest = written, time.perf_counter(), 0.0, 0.0
        latest = began
        while (now := time.perf_counter()) - began < seconds:
            longest, latest = max(longest, now - latest), now
            due = first + int((now - began) * per_second)
            while written < due and time.perf_counter() - now < TICK:
                appending = time.perf_counter()
                written += _append(store, turns, 1)
                slowest = max(slowest, time.perf_counter() - appending)
            time.sleep(TICK / 2)
        told = {"entries a second": (written - first) / seconds, "longest gap": longest, "slowest append": slowest}
        print(json.dumps(told | {"CPU": time.process_time()}), flush=True)


def _append(store: SQLiteStore, turns: Iterator[Append], entries: int) -> int:
    written = 0
    while written < entries:
        turn = next(turns)
        store.append(turn)
        written += len(turn.entries)
    return written


class Writer:
    """`write`, in a process of its own."""

    def __init__(self, given: argparse.Namespace, target: Path) -> None:
        parts = (given.record, target, given.before, given.per_second, given.seconds)
        command = [sys.executable, "-m", "benchmarks.explorer.following", "--write", *map(str, parts)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def told(self) -> dict[str, float]:
        out, _ = self.process.communicate()
        told: dict[str, float] = json.loads(out)
        return {name: round(value, 3) for name, value in told.items()}


def followed(page: Page, server: Server, writer: Writer, until: float) -> dict[str, Any]:
    """Drag the cursor, and ask, for as long as is written."""
    frames: list[dict[str, float]] = []
    asked: list[float] = []
    while time.perf_counter() < until:
        frames.append(scrubbed(page, 60))
        asked.append(server.ask("status")[0][0] * 1000)
        page.evaluate(TO_THE_END)
        page.wait_for_timeout(2_000)
    return {
        "writer": writer.told(),
        "frame while scrubbing, ms, median": max(found["frame while scrubbing, ms, median"] for found in frames),
        "frame while scrubbing, ms, p99, worst of the drags": max(
            found["frame while scrubbing, ms, p99"] for found in frames
        ),
        "exact state after the cursor rests, ms, worst": max(
            found["exact state after the cursor rests, ms"] for found in frames
        ),
        "status at the end, ms, worst": max(asked),
        "drags": len(frames),
        "server's CPU, s": server.cpu(),
        "server's memory, MB": server.memory(),
    }


def measure(given: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        alone = Writer(given, Path(folder) / "alone.kerf")
        alone.go()
        without = alone.told()
        target = Path(folder) / "live.kerf"
        writer = Writer(given, target)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with serving(target, Path(folder)) as server:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(server.link)
            page.wait_for_function(FIRST)
            writer.go()
            found = followed(page, server, writer, time.perf_counter() + given.seconds)
            position = server.ask("record")[1]["last"]
        browser.close()
    machine = {"cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    return {"writer alone": without, "followed": found, "last position": position, "machine": machine}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--before", type=int, default=20_000)
    parser.add_argument("--per-second", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--write", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        source, target, before, per_second, seconds = given.write
        return write(Path(source), Path(target), int(before), int(per_second), float(seconds))
    given.record = given.record or record_of(MILLION, FOLDER)
    print(json.dumps(measure(given), indent=1))
    return None


if __name__ == "__main__":
    main()
