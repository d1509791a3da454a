"""`make fuzz`: tries the fuzz targets in turn, for so many minutes in all, and says what failed.

python -m tests.fuzz --minutes 10
python -m tests.fuzz --minutes 1 "manifests" "golden lines"
"""

from __future__ import annotations

import argparse
import time
import traceback

from tests.fuzz.targets import TARGETS
from tests.fuzz.trying import QUICK, QUICK_OF_SLOW, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of: {', '.join(TARGETS)}")
    options = parser.parse_args()
    names: list[str] = options.targets or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}")
    tried, failed = dict.fromkeys(names, 0), set[str]()
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end and len(failed) < len(names):
        for name in names:
            if name in failed or time.monotonic() >= end:
                continue
            examples = 4 * (QUICK_OF_SLOW if TARGETS[name].slow else QUICK)
            try:
                fuzz(TARGETS[name], examples)
                tried[name] += examples
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failed.add(name)
                print(f"FAILED: {name}\n{''.join(traceback.format_exception(error)[-12:])}", flush=True)
    for name, examples in tried.items():
        print(f"{'failed' if name in failed else 'ok':>6}  {examples:>8,} examples  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
