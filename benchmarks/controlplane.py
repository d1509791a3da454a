"""kerf on a real control plane with KWOK nodes: how soon pods run, on what, and what it takes.

    python benchmarks/controlplane.py [--workload FILE] [--seconds 180] [--runs 1] [--no-nomination] [--no-bursts]
        [--json]

Starts etcd, API server, scheduler, controller manager and KWOK (`make controlplane` builds them) on 127.0.0.1, applies
the workload, by default ../shared/workloads/scale-500.json, and waits until all its pods run. Times are seconds since
the workload was applied. kube-scheduler takes seconds to say of all pods that they do not fit: `claim_after_first_s`
and `claim_after_last_s` are from its first and from its last such word to the first NodeClaim, by the API server's own
clock (`--no-bursts`: the batch window of a second begins with its last word). `requests` are those that the API server
finished for kerf by the end, from its audit log; `price` is the sum of the nodes' prices in USD per hour; `cpu_s` what
kerf used of a processor until the first NodeClaim and until the end; `verified` is whether the record decides again as
recorded; `pending` is what the scheduler says of pods that never ran. `baseline_seconds` is a fixed loop of plain
Python in the same process before it all. With `--runs N` each run has a control plane of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import datetime
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


def measure(workload: dict[str, Any], seconds: float, folder: Path, *flags: str) -> dict[str, Any]:
    binaries = assets()
    if binaries is None:
        raise SystemExit(f"benchmarks/controlplane.py {CONDITION}")
    loop = baseline()
    plane = ControlPlane(binaries, folder / "plane", audit=True)
    kerf = Kerf(plane, folder, *flags)
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
_PODS = "/api/v1/namespaces/default/pods"


def _scale_out(plane: ControlPlane, kerf: Kerf, workload: dict[str, Any], seconds: float) -> dict[str, Any]:
    expected = sum(each["spec"]["replicas"] for each in workload["items"] if each["kind"] == "Deployment")
    started = time.monotonic()
    plane.apply(workload)
    applied = time.monotonic() - started
    _until(lambda: node_claims(plane), seconds)
    first, cpu = time.monotonic() - started, [kerf.cpu_seconds()]
    done = _until(lambda: not _not_running(plane), seconds)
    all_running = time.monotonic() - started
    memory = kerf.memory_mb()
    cpu.append(kerf.cpu_seconds())
    claims, nodes = node_claims(plane), plane.items("/api/v1/nodes")
    waiting = _not_running(plane)
    kerf.stop()
    requests = plane.requests_by("kerf/")
    return {
        "pods": expected,
        "running": len(plane.items(_PODS)) - len(plane.items(f"{_PODS}?{_NOT_RUNNING}")),
        "applied_s": round(applied, 2),
        "first_claim_s": round(first, 2),
        **_from_the_schedulers_word(plane),
        "all_running_s": round(all_running, 2) if done else None,
        "claims": len(claims),
        "price": round(sum(float(node["metadata"]["labels"].get(PRICE, 0)) for node in nodes), 4),
        "memory_mb": memory,
        "cpu_s": cpu,
        "requests": sum(requests.values()),
        "requests_by_kind": requests,
        "pending": waiting,
        "verified": "same" in kerf.verify(),
        "reference": REFERENCE,
    }


_NOT_RUNNING = "fieldSelector=status.phase%21%3DRunning"


def _not_running(plane: ControlPlane) -> list[str]:
    """What the scheduler says of the first of them; asked so that it costs the API server little."""
    found = plane.items(f"{_PODS}?{_NOT_RUNNING}&limit=1")
    return [str(each["status"].get("conditions", [{}])[0].get("message", "")) for each in found]


def _from_the_schedulers_word(plane: ControlPlane) -> dict[str, float]:
    """Seconds from its first and its last word before the first NodeClaim to that NodeClaim."""
    words: list[float] = []
    for event in plane.audited():
        ref, at = event.get("objectRef") or {}, datetime.fromisoformat(event["stageTimestamp"]).timestamp()
        if (event["verb"], ref.get("resource"), ref.get("subresource")) == ("patch", "pods", "status"):
            words.append(at)
        elif event["verb"] == "patch" and ref.get("resource") == "nodeclaims" and words:
            return {"claim_after_first_s": round(at - words[0], 2), "claim_after_last_s": round(at - words[-1], 2)}
    return {}


def _until(what: Any, seconds: float) -> Any:
    """The first truthy result, or the last one when the time is up."""
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="kerf on a real control plane with KWOK nodes")
    parser.add_argument("--workload", type=Path, default=WORKLOAD)
    parser.add_argument("--seconds", type=float, default=180, help="how long to wait for all pods")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--no-nomination", action="store_true", help="leave pods' status.nominatedNodeName alone")
    parser.add_argument("--no-bursts", action="store_true", help="wait for the scheduler's word on every pod")
    parser.add_argument("--json", action="store_true", help="print one JSON object a run, a line each")
    asked = parser.parse_args()
    workload = json.loads(asked.workload.read_text())
    flags = ["--no-nominate"] if asked.no_nomination else []
    if asked.no_bursts:
        flags.append("--batch-enough-pods=0")
    missed = 0
    for _ in range(asked.runs):
        with tempfile.TemporaryDirectory(prefix="kerf-controlplane-") as folder:
            figures = measure(workload, asked.seconds, Path(folder), *flags)
        print(json.dumps(figures) if asked.json else json.dumps(figures, indent=2), flush=True)
        missed += figures["all_running_s"] is None
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
