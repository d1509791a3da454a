"""How soon the explorer shows a long record, and how smooth it is, in a real browser.

    python -m benchmarks.ui [--entries 1000000 | --record FILE] [--runs 3] [--moves 120]

Server and browser (headless chromium by playwright) share the machine. Each run starts both anew, without anything in
the cache; `opened again` is a second server, with what the first one kept. The first view counts from the link on:
`first of it` is the verdict and the nodes, then come lanes, marks and curves. Figures of the API are those of a server
that has read all it reads ahead. `CPU` is that of the server, and for a view of the browser, too: on a machine that
does other work, compare these. Figures are medians of the runs. It prints JSON, each figure beside its target, and
ends with 1 where one is missed. Needs the extra `ui`, and chromium (CHROMIUM).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct, to_builtins
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.records.long_record import FOLDER, MILLION, record_of
from kerf.adapters.web.static.files import page_files

TARGETS = {
    "kerf ui until its link, s": None,
    "first of it, s": None,
    "first view, s": 3.0,
    "first view, s of CPU": 3.0,
    "first view when opened again, s": 3.0,
    "first view when opened again, s of CPU": 3.0,
    "all read, s": None,
    "all read, s of CPU": None,
    "all read ahead, s of CPU": None,
    "frame while scrubbing, ms, median": 1000 / 30,
    "frame while scrubbing, ms, p99": 200.0,
    "exact state after the cursor rests, ms": None,
    "JavaScript heap, MB": 300.0,
    "server's memory, MB, highest": 500.0,
    "API, ms, p95": 100.0,
    "API, ms of CPU, p95": 100.0,
    "script compressed, kB": 200.0,
}
FIRST = """() => document.querySelector("#nodes .node, #nodes p") && document.getElementById("verdict").textContent"""
SEEN = FIRST + """ && document.querySelector("#lanes-room").style.height"""
READ = '() => document.getElementById("reading").hidden'
FRAMES = """() => { window.frames_ = []; const note = (at) => { frames_.push(at); requestAnimationFrame(note); };
    requestAnimationFrame(note); }"""
ASKED_EACH, LONGEST, QUIET = 12, 180_000, 3.0
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/#token=\S+")


Taken = tuple[float, float]
"""Seconds, and seconds of CPU."""


class Figure(Struct):
    """A median, with its target: it is to be below."""

    value: float
    target: float | None
    met: bool | None
    of: list[float]


class Server:
    """`kerf ui` of a record, in a process of its own."""

    def __init__(self, record: Path, cache: Path) -> None:
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "kerf", "ui", str(record)]
        environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        found = LINK.search(self.process.stdout.readline())
        if found is None:
            raise SystemExit("kerf ui printed no link")
        self.link = found.group()

    def memory(self) -> float:
        """The most that it had, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def cpu(self) -> float:
        return cpu_of(self.process.pid)

    def settle(self) -> None:
        """Waits until nothing is read ahead any more."""
        while True:
            before = self.cpu()
            time.sleep(QUIET)
            if self.cpu() - before < QUIET / 10:
                return

    def ask(self, question: str, /, **parameters: Any) -> tuple[Taken, Any]:
        """What an answer takes, and the answer."""
        address, token = self.link.split("#token=")
        url = f"{address}api/v1/{question}?{urlencode(parameters)}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        began, used = time.perf_counter(), self.cpu()
        with urllib.request.urlopen(request) as answer:
            body = answer.read()
        return (time.perf_counter() - began, self.cpu() - used), json.loads(body)

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)


@contextmanager
def serving(record: Path, cache: Path) -> Iterator[Server]:
    server = Server(record, cache)
    try:
        yield server
    finally:
        server.close()


def cpu_of(process: int) -> float:
    """The CPU time of a process by now: the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime(~process << 3 | 2)


def browsers_cpu() -> float:
    """The CPU time of all processes of chromium that this one started."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            told = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(told[1])
    total = 0.0
    for process in parents:
        with suppress(OSError):
            if _is_below(process, os.getpid(), parents) and b"chrom" in Path(f"/proc/{process}/cmdline").read_bytes():
                total += cpu_of(process)
    return total


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents and process != ancestor:
        process = parents[process]
    return process == ancestor


def opened(browser: Browser, server: Server) -> tuple[Page, float, Taken]:
    """A page; the seconds until it shows the verdict and the nodes; and what it takes until it shows lanes, too."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    began, used = time.perf_counter(), browsers_cpu() + server.cpu()
    page.goto(server.link)
    page.wait_for_function(FIRST, timeout=LONGEST)
    first = time.perf_counter() - began
    page.wait_for_function(SEEN, timeout=LONGEST)
    return page, first, (time.perf_counter() - began, browsers_cpu() + server.cpu() - used)


def scrubbed(page: Page, moves: int) -> dict[str, float]:
    """Drags the cursor through the curves and back."""
    box = page.locator("#curves").bounding_box()
    assert box is not None
    left, width, height = box["x"] + box["width"] * 0.2, box["width"] * 0.78, box["y"] + 40
    page.mouse.move(left, height)
    page.mouse.down()
    page.evaluate(FRAMES)
    for move in range(moves):
        share = 2 * move / moves
        page.mouse.move(left + width * (share if share < 1 else 2 - share), height)
    frames: list[float] = page.evaluate("frames_")
    page.mouse.up()
    rested = time.perf_counter()
    page.wait_for_function("() => !document.querySelector('#cluster.moving')", timeout=LONGEST)
    after = time.perf_counter() - rested
    took = sorted(later - earlier for earlier, later in pairwise(frames))
    return {
        "frame while scrubbing, ms, median": statistics.median(took),
        "frame while scrubbing, ms, p99": took[int(len(took) * 0.99)],
        "exact state after the cursor rests, ms": after * 1000,
    }


def heap(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["JSHeapUsedSize"]) / 1e6


def answers(server: Server) -> dict[str, list[Taken]]:
    """What each of the page's questions takes, at moments anywhere in the record."""
    dice = random.Random(1)
    _, span = server.ask("timeline")
    lane = server.ask("tile", level=span["coarsest"], number=span["until"] >> span["coarsest"])[1]["lanes"][0]
    taken: dict[str, list[Taken]] = {}
    for _ in range(ASKED_EACH):
        at, level = dice.randint(span["since"], span["until"]), dice.randint(span["finest"], span["coarsest"])
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000 + 1))
        for name, parameters in (
            ("timeline", {}),
            ("tile", {"level": level, "number": at >> level}),
            ("fill", {"level": level, "number": at >> level}),
            ("curves", {"since": span["since"], "until": at + 1_000, "points": 600}),
            ("step", {"at": at}),
            ("status", {"at": moment}),
            ("explain", {"name": f"nodeclaim/{lane['claim']}", "at": moment}),
            ("story", {"name": f"nodeclaim/{lane['claim']}", "at": moment}),
            ("log", {"since": at, "until": at + 300_000}),
            ("findings", {}),
        ):
            taken.setdefault(name, []).append(server.ask(name, **parameters)[0])
    return taken


def p95(taken: list[Taken], cpu: bool) -> float:
    """Milliseconds."""
    return round(sorted(one[cpu] for one in taken)[int(len(taken) * 0.95)] * 1000, 1)


def run(browser: Browser, record: Path, moves: int) -> tuple[dict[str, float], dict[str, Taken]]:
    with tempfile.TemporaryDirectory() as cache:
        with serving(record, Path(cache)) as server:
            found = {"kerf ui until its link, s": time.perf_counter() - server.began}
            page, found["first of it, s"], seen = opened(browser, server)
            found |= dict(zip(("first view, s", "first view, s of CPU"), seen, strict=True))
            page.wait_for_function(READ, timeout=LONGEST)
            found |= {"all read, s": time.perf_counter() - server.began, "all read, s of CPU": server.cpu()}
            page.wait_for_timeout(1_500)
            found |= scrubbed(page, moves) | {"JavaScript heap, MB": heap(page)}
            server.settle()
            found["all read ahead, s of CPU"] = server.cpu()
            page.close()
            taken = answers(server)
            every = [one for each in taken.values() for one in each]
            found |= {"API, ms, p95": p95(every, cpu=False), "API, ms of CPU, p95": p95(every, cpu=True)}
            found["server's memory, MB, highest"] = server.memory()
        with serving(record, Path(cache)) as server:
            page, _, seen = opened(browser, server)
            names = ("first view when opened again, s", "first view when opened again, s of CPU")
            found |= dict(zip(names, seen, strict=True))
            page.close()
    return found, {name: (p95(each, cpu=False), p95(each, cpu=True)) for name, each in taken.items()}


def script_size() -> float:
    scripts = (file for path, file in page_files().items() if path.endswith(".js"))
    return sum(len(gzip.compress(file.read_bytes())) for file in scripts) / 1000


def measure(record: Path, runs: int, moves: int) -> dict[str, Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found, routes = zip(*(run(browser, record, moves) for _ in range(runs)), strict=True)
        browser.close()
    figures = {}
    for name, target in TARGETS.items():
        of = [script_size()] if name.startswith("script") else [round(one[name], 2) for one in found]
        value = round(statistics.median(of), 2)
        figures[name] = Figure(value, target, None if target is None else value < target, of)
    machine = {"cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    return {
        "figures": to_builtins(figures),
        "API by route, p95 in ms and in ms of CPU": routes[-1],
        "record": record.name,
        "machine": machine,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=MILLION)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--moves", type=int, default=120)
    given = parser.parse_args()
    result = measure(given.record or record_of(given.entries, given.folder), given.runs, given.moves)
    print(json.dumps(result, indent=1))
    return 0 if all(figure["met"] is not False for figure in result["figures"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
