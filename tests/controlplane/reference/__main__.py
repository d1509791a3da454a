"""`python -m tests.controlplane.reference`: the reference's end-to-end suite, run against kerf spec by spec.

Ends with 0 when all specs passed or were skipped by themselves, 1 when one failed, 2 when something is missing.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from tests.controlplane.reference.cluster import Cluster, require
from tests.controlplane.reference.suite import VERSION, CannotBuild, Outcome, Spec, Suite

GOOD = ("passed", "skipped")
ALONE = "chaos_test.go"  # opens controller-runtime's default port for metrics: one of its specs at a time


class Run:
    """Some specs on some clusters at once. A cluster on which one has failed is not used again."""

    def __init__(self, suite: Suite, folder: Path, environment: dict[str, str]) -> None:
        self._suite, self._folder, self._environment = suite, folder, environment
        self._left: queue.SimpleQueue[Spec] = queue.SimpleQueue()
        self._lock, self._alone = threading.Lock(), threading.Lock()
        self.outcomes: list[Outcome] = []
        self._clusters = 0

    def over(self, specs: list[Spec], clusters: int) -> list[Outcome]:
        for spec in specs:
            self._left.put(spec)
        workers = [threading.Thread(target=self._work) for _ in range(min(clusters, len(specs)))]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except KeyboardInterrupt:  # the suites were interrupted, too: no further spec begins
            while self._next() is not None:
                pass
            raise
        return self.outcomes

    def _work(self) -> None:
        cluster: Cluster | None = None
        try:
            while (spec := self._next()) is not None:
                cluster = cluster or self._cluster()
                outcome = self._one(spec, cluster)
                if outcome.state not in GOOD:
                    cluster.stop()
                    cluster = None
        finally:
            if cluster is not None:
                cluster.stop()

    def _next(self) -> Spec | None:
        try:
            return self._left.get_nowait()
        except queue.Empty:
            return None

    def _cluster(self) -> Cluster:
        with self._lock:
            self._clusters += 1
            number = self._clusters
        cluster = Cluster(self._suite, self._folder / f"cluster-{number}", self._environment)
        cluster.start()
        return cluster

    def _one(self, spec: Spec, cluster: Cluster) -> Outcome:
        folder = Path(tempfile.mkdtemp(prefix=f"{time.strftime('%H%M%S')}-", dir=self._folder))
        (folder / "spec").write_text(f"{spec.text}\n{cluster.kerf.log}\n")
        with self._alone if spec.file == ALONE else nullcontext():
            outcome = self._suite.run(spec, cluster.plane.kubeconfig, folder)
        if not cluster.kerf.running and outcome.state in GOOD:
            outcome = Outcome(spec, "failed", outcome.seconds, f"kerf has ended: {cluster.kerf.tail(1)}")
        with self._lock:
            self.outcomes.append(outcome)
            print(f"{outcome.state:8} {outcome.seconds:7.1f} s  {spec.text}", flush=True)
            if outcome.state not in GOOD:
                print(f"    {outcome.why[:600]}\n    {folder}", flush=True)
        return outcome


def main() -> int:
    options = _options()
    suite = Suite(options.suite, options.version)
    try:
        suite.build()
        specs = suite.specs(options.focus)
        if options.list:
            print("\n".join(f"{spec.file:28} {spec.text}" for spec in specs))
            return 0
        require(suite)
        folder = options.output or Path(tempfile.mkdtemp(prefix="kerf-reference-"))
        folder.mkdir(parents=True, exist_ok=True)
        environment = dict(variable.split("=", 1) for variable in options.env)
        print(f"{len(specs)} specs of {suite.name} {suite.version}; logs and records: {folder}", flush=True)
        outcomes = Run(suite, folder, environment).over(specs, options.clusters)
    except CannotBuild as problem:
        print(f"reference: {problem}", file=sys.stderr)
        return 2
    (folder / "outcomes.json").write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    bad = [outcome for outcome in outcomes if outcome.state not in GOOD]
    print(f"{len(outcomes) - len(bad)} of {len(specs)} specs passed or were skipped")
    return 1 if bad or len(outcomes) != len(specs) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.reference", description=__doc__)
    parser.add_argument("--suite", default="regression", choices=("regression", "performance", "dra"))
    parser.add_argument("--focus", default="", help="a regular expression over the specs' texts")
    parser.add_argument("--clusters", type=int, default=1, help="control planes that work side by side")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a setting of kerf's")
    parser.add_argument("--output", type=Path, help="a folder for logs and records")
    parser.add_argument("--version", default=VERSION, help="of the reference's Go module")
    parser.add_argument("--list", action="store_true", help="only say which specs there are")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
