"""Karpenter itself, to be measured beside kerf: its controller for KWOK on a test's control plane, and the benchmark of
its scheduler. `make reference` builds both from its published module."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import Controller

CONTROLLER, SCHEDULING = "karpenter-kwok", "scheduling.test"


def built(name: str) -> Path:
    """The newest there is, in a folder named after its version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kerf"
    found = max(cache.glob(f"reference/v*/{name}"), default=None)
    if found is None:
        raise SystemExit(f"this needs Karpenter's {name}: run `make reference`")
    return found


def scheduling(benchmark: str, runs: int) -> dict[str, float]:
    """The best of some runs of one of Karpenter's benchmarks of its scheduler."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    flags = ["-test.run=^$", f"-test.bench=^{benchmark}$", "-test.benchtime=1x", f"-test.count={runs}"]
    done = subprocess.run([built(SCHEDULING), *flags], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(benchmark)]
    results = [dict(zip(line[3::2], map(float, line[2::2]), strict=True)) for line in lines]
    best = max(results, key=lambda each: each["pods/sec"])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "pods_per_s": round(best["pods/sec"], 1),
        "seconds": round(best["ns/op"] / 1e9, 6),
        "cpu_seconds": round(cpu / runs, 2),
        "nodes": int(best["nodes"]),
    }


class Karpenter(Controller):
    """As its chart runs it: the default settings, one replica with leader election."""

    agent = "karpenter"
    """What its user agents begin with: of the leader election's client it is the binary's name."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(folder / "karpenter.log")
        self._binary, self._kubeconfig = built(CONTROLLER), plane.kubeconfig
        self.version = self._binary.parent.name

    def start(self) -> None:
        namespace = "kube-system"
        environment = {
            "KUBECONFIG": str(self._kubeconfig), "KUBERNETES_MIN_VERSION": "1.19.0-0",
            "SYSTEM_NAMESPACE": namespace, "LEADER_ELECTION_NAMESPACE": namespace,
            "METRICS_PORT": "0", "HEALTH_PROBE_PORT": "0",
            "FEATURE_GATES": "StaticCapacity=false,SpotToSpotConsolidation=false,NodeRepair=false,CapacityBuffer=false",
        }  # fmt: skip
        self._run([str(self._binary)], environment)
