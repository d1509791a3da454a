"""kerf on a real control plane with KWOK nodes: how soon pods run, on what, and what it takes.

    python benchmarks/controlplane.py [--workload FILE] [--seconds 180] [--json]

Starts etcd, API server, scheduler, controller manager and KWOK (`make controlplane` builds them) on 127.0.0.1, applies
the workload, by default ../shared/workloads/scale-500.json, and waits until all its pods run. Times are seconds since
the workload was applied; `requests` are those that the API server finished for kerf by then, from its audit log;
`price` is the sum of the nodes' prices in USD per hour; `verified` is whether the record decides again as recorded.
`baseline_seconds` is a fixed loop of plain Python in the same process before it all.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.scheduling import baseline
from tests.controlplane import crds
from tests.controlplane.plane import CONDITION, ControlPlane, assets
from tests.controlplane.running import Kerf, node_claims

ROOT = Path(__file__).resolve().parent.parent
WORKLOAD = ROOT.parent / "shared" / "workloads" / "scale-500.json"
REFERENCE = {"first_claim_s": 1.4, "all_running_s": 36.8, "claims": 97, "price": 10.25, "memory_mb": 144}
"""Karpenter's own figures for scale-500.json, measured once on a control plane of this kind with two idle cores."""
PRICE = "eks-node-viewer/instance-price"


def measure(workload: dict[str, Any], seconds: float, folder: Path) -> dict[str, Any]:
    binaries = assets()
    if binaries is None:
        raise SystemExit(f"benchmarks/controlplane.py {CONDITION}")
    loop = baseline()
    plane = ControlPlane(binaries, folder / "plane", audit=True)
    kerf = Kerf(plane, folder)
    try:
        plane.start()
        crds.install(plane)
        kerf.start()
        _until(lambda: kerf.record.exists() and plane.get(_LEASE)["spec"]["holderIdentity"], 30)
        time.sleep(2)
        return {**_scale_out(plane, kerf, workload, seconds), "baseline_seconds": round(loop, 6)}
    finally:
        if kerf.running:
            kerf.kill()
        plane.stop()


_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election"


def _scale_out(plane: ControlPlane, kerf: Kerf, workload: dict[str, Any], seconds: float) -> dict[str, Any]:
    expected = sum(each["spec"]["replicas"] for each in workload["items"] if each["kind"] == "Deployment")
    started = time.monotonic()
    plane.apply(workload)
    applied = time.monotonic() - started
    _until(lambda: node_claims(plane), seconds)
    first = time.monotonic() - started
    done = _until(lambda: _running(plane) == expected, seconds)
    all_running = time.monotonic() - started
    claims, nodes = node_claims(plane), plane.items("/api/v1/nodes")
    memory = kerf.memory_mb()
    kerf.stop()
    requests = plane.requests_by("kerf/")
    return {
        "pods": expected,
        "running": _running(plane),
        "applied_s": round(applied, 2),
        "first_claim_s": round(first, 2),
        "all_running_s": round(all_running, 2) if done else None,
        "claims": len(claims),
        "price": round(sum(float(node["metadata"]["labels"].get(PRICE, 0)) for node in nodes), 4),
        "memory_mb": memory,
        "requests": sum(requests.values()),
        "requests_by_kind": requests,
        "verified": "same" in kerf.verify(),
        "reference": REFERENCE,
    }


def _running(plane: ControlPlane) -> int:
    pods = plane.items("/api/v1/namespaces/default/pods")
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def _until(what: Any, seconds: float) -> Any:
    """The first truthy result, or the last one when the time is up."""
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(0.25)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="kerf on a real control plane with KWOK nodes")
    parser.add_argument("--workload", type=Path, default=WORKLOAD)
    parser.add_argument("--seconds", type=float, default=180, help="how long to wait for all pods")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    workload = json.loads(asked.workload.read_text())
    with tempfile.TemporaryDirectory(prefix="kerf-controlplane-") as folder:
        figures = measure(workload, asked.seconds, Path(folder))
    print(json.dumps(figures) if asked.json else json.dumps(figures, indent=2))
    return 0 if figures["all_running_s"] is not None else 1


if __name__ == "__main__":
    raise SystemExit(main())
