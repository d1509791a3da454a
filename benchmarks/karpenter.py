"""Karpenter's own controller for KWOK on a test's control plane, to be measured beside kerf (`make reference`)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.controlplane.plane import ControlPlane
from tests.controlplane.running import Controller

CONDITION = "needs Karpenter's controller for KWOK: run `make reference`"


def binary() -> Path | None:
    """The newest that was built, in a folder named after its version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kerf"
    return max(cache.glob("reference/v*/karpenter-kwok"), default=None)


class Karpenter(Controller):
    """As its chart runs it: the default settings, one replica with leader election."""

    agent = "karpenter"
    """What its user agents begin with: of the leader election's client it is the binary's name."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(folder / "karpenter.log")
        found = binary()
        if found is None:
            raise SystemExit(f"benchmarks/controlplane.py {CONDITION}")
        self._binary, self._kubeconfig = found, plane.kubeconfig
        self.version = found.parent.name

    def start(self) -> None:
        namespace = "kube-system"
        environment = {
            "KUBECONFIG": str(self._kubeconfig), "KUBERNETES_MIN_VERSION": "1.19.0-0",
            "SYSTEM_NAMESPACE": namespace, "LEADER_ELECTION_NAMESPACE": namespace,
            "METRICS_PORT": "0", "HEALTH_PROBE_PORT": "0",
            "FEATURE_GATES": "StaticCapacity=false,SpotToSpotConsolidation=false,NodeRepair=false,CapacityBuffer=false",
        }  # fmt: skip
        self._run([str(self._binary)], environment)
