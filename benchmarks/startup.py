"""How long the help pages of `kerf` take: CPU and wall time of each, beside `python -c pass`.

    .venv/bin/python benchmarks/startup.py [--runs 5] [--json]

Ratios to `python -c pass` compare across machines. The limits that tests/unit/cli/test_startup.py serves: 0.3 s for
`kerf --help`, 0.6 s for a command's help, on an idle processor.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kerf.adapters.cli.command_table import COMMANDS

ROOT = Path(__file__).resolve().parents[1]


def measured(arguments: list[str], runs: int) -> dict[str, float]:
    """Medians in seconds of so many runs; one run before them fills the caches."""
    cpu, wall = [], []
    for _ in range(runs + 1):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        wall.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"cpu": round(statistics.median(cpu[1:]), 4), "wall": round(statistics.median(wall[1:]), 4)}


def figures(runs: int) -> dict[str, Any]:
    """Each help page, with its ratio (of CPU time) to `python -c pass`."""
    nothing = measured(["-c", "pass"], runs)
    pages = [["--help"], *([command.name, "--help"] for command in COMMANDS)]
    found: dict[str, Any] = {"runs": runs, "python -c pass": nothing, "pages": {}}
    for page in pages:
        seconds = measured(["-m", "kerf", *page], runs)
        ratio = round(seconds["cpu"] / nothing["cpu"], 1)
        found["pages"][" ".join(["kerf", *page])] = {**seconds, "ratio": ratio}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = figures(options.runs)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, page in {"python -c pass": found["python -c pass"], **found["pages"]}.items():
        print(f"{name:<24} {page['cpu']:.3f} s CPU, {page['wall']:.3f} s, {page.get('ratio', 1.0):.1f} times python")


if __name__ == "__main__":
    main()
