"""Peak memory of kerf's commands, each in a process of its own, beside that of a bare Python.

    python benchmarks/memory.py [--json] [--runs 1]

`demo` runs the whole demonstration (with its mock of AWS), `verify` the record that it left, `plan` the scenario of
docs/examples/plan (and, with --scenarios FILE --catalogues FILE, a file of many). Figures are MiB of resident set, the
highest of the runs; `seconds` is the shortest wall time. Exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct, to_builtins

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"demo": 400.0, "plan": 120.0, "plan many": 120.0, "verify": 120.0}
"""MiB (issue, "Figures to reach")."""


class Figure(Struct):
    """One command. The target is None where there is none."""

    peak_mib: float
    seconds: float
    target_mib: float | None


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Peak MiB and seconds of one run. Raises SystemExit when it fails."""
    began = time.perf_counter()
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed:\n{(folder / 'output.txt').read_text()}")
    return usage.ru_maxrss / 1024, time.perf_counter() - began


def figures(runs: int, scenarios: Path | None, catalogues: Path | None) -> dict[str, Figure]:
    kerf = [sys.executable, "-m", "kerf"]
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "plan": [*kerf, "plan", str(ROOT / "docs/examples/plan/workshop.json"), "--json"],
        "demo": [*kerf, "demo"],
        "verify": [*kerf, "verify", "demo.kerf"],
    }
    if scenarios is not None:
        given = [] if catalogues is None else ["--catalogues", str(catalogues.resolve())]
        commands["plan many"] = [*kerf, "plan", str(scenarios.resolve()), *given, "--json"]
    with tempfile.TemporaryDirectory(prefix="kerf-memory-") as name:
        made = {}
        for what, command in commands.items():
            found = [measured(command, Path(name)) for _ in range(runs)]
            peak, seconds = max(peak for peak, _ in found), min(seconds for _, seconds in found)
            made[what] = Figure(round(peak, 1), round(seconds, 2), TARGETS.get(what))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--scenarios", type=Path)
    parser.add_argument("--catalogues", type=Path)
    given = parser.parse_args()
    found = figures(given.runs, given.scenarios, given.catalogues)
    met = all(peak.target_mib is None or peak.peak_mib < peak.target_mib for peak in found.values())
    if given.json:
        machine = {"python": platform.python_version(), "system": platform.system(), "cpus": os.cpu_count()}
        print(json.dumps({"machine": machine, "figures": to_builtins(found), "met": met}, indent=2))
    else:
        for what, peak in found.items():
            target = f"  (target: under {peak.target_mib:.0f})" if peak.target_mib is not None else ""
            print(f"{what:<10} {peak.peak_mib:7.1f} MiB {peak.seconds:6.2f} s{target}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
