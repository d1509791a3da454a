"""`make dst SEEDS=n`: plays scenarios of n seeds, says which invariants are broken, and what was exercised.

`make dst SEED=n` plays one, and says what is in it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.faults import FaultPlan
from tests.dst.coverage import table
from tests.dst.play import Outcome, play
from tests.dst.scenario import scenario
from tests.support.invariants.ledger import Broken
from tests.support.records import stored

PROGRESS = 25
"""Seeds between two lines of progress."""


def judged(seed: int) -> tuple[int, list[Broken], Counter[str], float]:
    started = perf_counter()
    outcome = play(scenario(seed))
    return seed, outcome.broken, outcome.exercised, perf_counter() - started


def many(first: int, count: int, jobs: int) -> int:
    started, slowest = perf_counter(), (0.0, 0)
    failed: dict[int, list[Broken]] = {}
    exercised: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        for done, (seed, broken, seen, took) in enumerate(pool.map(judged, range(first, first + count)), 1):
            exercised.update(seen)
            slowest = max(slowest, (took, seed))
            if broken:
                failed[seed] = broken
                print(f"  seed {seed}: {_line(broken[0])}", flush=True)
            if done % PROGRESS == 0:
                print(f"{done}/{count} seeds, {len(failed)} failed, {perf_counter() - started:.0f} s", flush=True)
    _tell_exercised(exercised)
    print(f"\n{count} seeds in {perf_counter() - started:.0f} s (slowest: {slowest[1]}, {slowest[0]:.1f} s)")
    for seed, broken in sorted(failed.items()):
        print(f"broken: {', '.join(sorted({violation.invariant for violation in broken}))} — make dst SEED={seed}")
    return 1 if failed else 0


def one(seed: int) -> int:
    drawn = scenario(seed)
    print(f"seed {seed}: what it has made")
    for document in drawn.documents:
        print(f"  {document.get('kind')} {document.get('metadata', {}).get('name')}{_about(document)}")
    print(f"  actions: {', '.join(f'{n} {k}' for k, n in sorted(Counter(a['action'] for a in drawn.actions).items()))}")
    print(f"  settings: {drawn.settings}")
    print(f"  each death loses the record: {'yes' if drawn.forgets else 'no'}")
    nothing = FaultPlan()
    for name in drawn.faults.__struct_fields__:
        if getattr(drawn.faults, name) != getattr(nothing, name):
            print(f"  {name}: {getattr(drawn.faults, name)}")
    outcome = play(drawn)
    _tell_exercised(outcome.exercised)
    print()
    for broken in outcome.broken:
        print(f"broken: {_line(broken)}")
    print(f"record: {_kept(outcome)}")
    print("look at it with: kerf log RECORD, kerf story RECORD NAME, kerf at RECORD POSITION")
    print("all invariants hold" if not outcome.broken else f"{len(outcome.broken)} broken")
    return 1 if outcome.broken else 0


def _about(document: dict[str, object]) -> str:
    spec = document.get("spec")
    if not isinstance(spec, dict) or document.get("kind") not in ("NodePool", "PodDisruptionBudget"):
        return f" ({spec['replicas']} replicas)" if isinstance(spec, dict) and "replicas" in spec else ""
    rest = spec.get("disruption", {k: v for k, v in spec.items() if k != "selector"})
    return f" {rest}"


def _line(broken: Broken) -> str:
    after = (broken.at - START) // 1000 if broken.at else 0
    when = f", {datetime.fromtimestamp(broken.at / 1000, UTC):%H:%M:%S} (+{after} s)" if broken.at else ""
    return f"{broken.invariant}: {broken.what} [position {broken.position}{when}]"


def _tell_exercised(exercised: Counter[str]) -> None:
    print("exercised:")
    for name, count in sorted(exercised.items()):
        print(f"  {count:8} {name}")
    print("features:", *table(exercised), sep="\n")


def _kept(outcome: Outcome) -> Path:
    """The record as a file, for `kerf story`."""
    path = Path(tempfile.gettempdir()) / f"kerf-dst-{outcome.scenario.seed}.kerf"
    for old in path.parent.glob(path.name + "*"):
        old.unlink()
    assert outcome.store is not None
    return stored(path, outcome.store)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make dst")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    return one(given.seed) if given.seed is not None else many(given.first, given.seeds, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
