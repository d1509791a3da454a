"""How fast kerf is as it ships: every figure at the default settings (issue 14, point 10).

    python benchmarks/shipped.py [ROW ...] [--runs 2] [--json]

Each row has what was measured (`figures`), the figures of before issue 14 (`today`), those that are wanted, and whether
these are `reached`: of `ratio` and `pods_per_s` at least, of seconds at most. ROW is the name of a row, or the
beginning of several (`diverse`). Rows that need what is not built here say so in `absent`. A row's `cpu_s` are seconds
of processor time; `ratio` and the row `lease` alone go by wall clock. `baseline_seconds` is a fixed loop of plain
Python, to compare machines.

A new row is one line in a table like `PLANNER_ROWS`: its figures wanted, and a function of the number of runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.scheduling import baseline
from benchmarks.shipped_rows.days import DAY_ROWS
from benchmarks.shipped_rows.planner import PLANNER_ROWS, Row
from kerf.adapters.cli.garbage import look_rarely

ROWS: dict[str, Row] = {**PLANNER_ROWS, **DAY_ROWS}
AT_LEAST = "pods_per_s", "ratio"
"""The figures that are better if they are higher. All others are better if they are lower."""


def measured(row: Row, runs: int) -> dict[str, Any]:
    wanted, measure = row
    figures = {key: value for key, value in wanted.items() if key != "today"}
    told = {"wanted": figures, "today": wanted.get("today")}
    try:
        found = measure(runs)
    except SystemExit as problem:
        return {**told, "absent": str(problem)}
    return {**told, "figures": found, "reached": reached(found, figures)}


def reached(found: Mapping[str, Any], wanted: Mapping[str, float]) -> bool:
    return all(found[name] >= least if name in AT_LEAST else found[name] <= least for name, least in wanted.items())


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast kerf is at its default settings")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; all without one")
    parser.add_argument("--runs", type=int, default=2, help="of quick rows, after a first one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    chosen = [name for name in ROWS if not asked.rows or name.startswith(tuple(asked.rows))]
    if not chosen or asked.runs < 1:
        parser.error(f"no row begins so; known ones: {', '.join(ROWS)}" if not chosen else "--runs is at least 1")
    look_rarely()  # as every command of kerf does
    rows = {}
    for name in chosen:
        rows[name] = measured(ROWS[name], asked.runs)
        if not asked.json:
            print(name, json.dumps(rows[name]), flush=True)
    if asked.json:
        print(json.dumps({"rows": rows, "baseline_seconds": round(baseline(), 6)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
