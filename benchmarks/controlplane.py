"""kerf, or Karpenter, on a real control plane with KWOK nodes: how soon pods run, on what, and what it takes.

    python benchmarks/controlplane.py [--controller kerf|karpenter|both] [--workload FILE] [--seconds 180] [--runs 1]
        [--scale-in SECONDS] [--record FOLDER] [--no-nomination] [--no-bursts] [--json]

Starts etcd, API server, scheduler, controller manager and KWOK (`make controlplane` builds them, `make reference`
Karpenter's controller) on 127.0.0.1, applies the workload, by default benchmarks/workloads/scale-500.json, and
waits until all its pods run. With `--scale-in` every Deployment is then brought from 50 replicas to 15 at once, and the
course of the price is followed. Each run has a control plane of its own; with `both` they take turns. `--record` keeps
kerf's records in a folder, for `kerf log`.

Times are seconds since the workload was applied, `first_claim_s` by the API server's own clock: `claim_after_first_s`
and `claim_after_last_s` are from kube-scheduler's first and last word on a pod before it. `price` is the sum of the
nodes' prices in USD per hour. `requests` are those that the API server finished for the controller from the workload to
REST seconds after all pods ran, from its audit log (`requests_to_start`: before that); `requests_of_all` those of
everybody in the whole run, by the audit log and by the API server's metrics, which do not tell clients apart. `cpu_s`
is what the controller used of a processor until it started, the first NodeClaim, the last running pod, and the end of
that REST; `verified` whether kerf's record decides again as recorded; `pending` what the scheduler says of pods that
never ran. What others took of the machine shows in `load` (the average before), `others_cores` (processors used by
neither control plane nor controller until all pods ran) and `baseline_seconds`, a fixed loop of plain Python before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.karpenter import Karpenter
from benchmarks.scheduling import baseline
from tests.support.controlplane import crds
from tests.support.controlplane.plane import CONDITION, ControlPlane, assets
from tests.support.controlplane.running import Kerf, cpu_seconds, node_claims

ROOT = Path(__file__).resolve().parent.parent
WORKLOAD = ROOT / "benchmarks" / "workloads" / "scale-500.json"
PRICE = "eks-node-viewer/instance-price"
REST = 5.0  # seconds in which nodes finish what pods need not wait for, and no consolidation begins
REPLICAS = 15
COURSE = (20, 38, 54, 67, 70, 99, 131, 161, 193, 257, 318, 366, 414)
"""Seconds after the scale-in at which the price is told, as far as they go."""
KERF, KARPENTER = "kerf", "karpenter"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election"
_PODS = "/api/v1/namespaces/default/pods"
_NOT_RUNNING = "fieldSelector=status.phase%21%3DRunning"


class Run:
    """One controller on a control plane of its own."""

    def __init__(self, plane: ControlPlane, controller: Kerf | Karpenter, agent: str) -> None:
        self.plane, self.controller, self._agent = plane, controller, agent

    def ready(self) -> None:
        """Returns when it has the Lease, and some seconds for its watches."""
        crds.install(self.plane)
        self.controller.start()
        if not _until(lambda: self.plane.request("GET", _LEASE)[1].get("spec", {}).get("holderIdentity"), 60):
            raise SystemExit(f"it does not take the Lease:\n{self.controller.tail()}")
        time.sleep(3)

    def scale_out(self, workload: dict[str, Any], seconds: float) -> dict[str, Any]:
        cpu, others = [self.controller.cpu_seconds()], self._others()
        began, started = time.time(), time.monotonic()
        self.plane.apply(workload)
        applied = time.monotonic() - started
        _until(lambda: node_claims(self.plane), seconds)
        cpu.append(self.controller.cpu_seconds())
        done = _until(lambda: not self._not_running(), seconds)
        took = time.monotonic() - started
        others = (self._others() - others) / took
        cpu.append(self.controller.cpu_seconds())
        nodes, waiting = self.plane.items("/api/v1/nodes"), self._not_running()
        pods = len(self.plane.items(_PODS)) - len(self.plane.items(f"{_PODS}?{_NOT_RUNNING}"))
        time.sleep(REST)
        requests = self.plane.requests_by(self._agent, began)
        return {
            "running": pods,
            "applied_s": round(applied, 2),
            **self._first_claim(began),
            "all_running_s": round(took, 2) if done else None,
            "claims": len(nodes),
            "price": _price(nodes),
            "memory_mb": self.controller.memory_mb(),
            "cpu_s": [*cpu, self.controller.cpu_seconds()],
            "requests": sum(requests.values()),
            "requests_by_kind": requests,
            "requests_to_start": sum(self.plane.requests_by(self._agent, until=began).values()),
            "pending": waiting,
            "others_cores": round(others, 2),
        }

    def scale_in(self, workload: dict[str, Any], seconds: float) -> dict[str, Any]:
        began, started, cpu = time.time(), time.monotonic(), self.controller.cpu_seconds()
        for manifest in workload["items"]:
            if manifest["kind"] == "Deployment":
                path = f"/apis/apps/v1/namespaces/default/deployments/{manifest['metadata']['name']}"
                self.plane.request("PATCH", path, {"spec": {"replicas": REPLICAS}}, "application/merge-patch+json")
        prices: list[tuple[float, float]] = []
        names: set[str] = set()
        nodes = self.plane.items("/api/v1/nodes")
        before = {node["metadata"]["name"] for node in nodes}
        while (at := time.monotonic() - started) < seconds:
            nodes = self.plane.items("/api/v1/nodes")
            prices.append((at, _price(nodes)))
            names.update(node["metadata"]["name"] for node in nodes)
            time.sleep(2)
        requests = self.plane.requests_by(self._agent, began)
        return {
            "seconds": seconds,
            "course": {str(at): _at(prices, at) for at in COURSE if at <= seconds},
            "mean_price": round(_mean(prices), 4),
            "price": prices[-1][1],
            "claims": len(nodes),
            "launched": len(names - before),
            "evictions": sum(count for what, count in requests.items() if what.endswith("eviction")),
            "requests": sum(requests.values()),
            "requests_by_kind": requests,
            "cpu_s": round(self.controller.cpu_seconds() - cpu, 2),
            "memory_mb": self.controller.memory_mb(),
            "running": len(self.plane.items(_PODS)) - len(self.plane.items(f"{_PODS}?{_NOT_RUNNING}")),
        }

    def of_all(self) -> dict[str, int]:
        """Requests of all clients but those for the metrics themselves, by the audit log and by the metrics."""
        metrics = str(self.plane.request("GET", "/metrics")[1]).splitlines()
        counted = (line for line in metrics if line.startswith("apiserver_request_total{"))
        return {
            "metrics": int(sum(float(line.rpartition(" ")[2]) for line in counted)),
            "audit": sum(self.plane.requests_by("").values()),
        }

    def _not_running(self) -> list[str]:
        """What the scheduler says of the first of them; asked so that it costs the API server little."""
        found = self.plane.items(f"{_PODS}?{_NOT_RUNNING}&limit=1")
        return [str(pod["status"].get("conditions", [{}])[0].get("message", "")) for pod in found]

    def _first_claim(self, began: float) -> dict[str, float]:
        """Seconds to the first NodeClaim, and from the scheduler's first and last word before."""
        words: list[float] = []
        for event in self.plane.audited():
            ref, at = event.get("objectRef") or {}, datetime.fromisoformat(event["stageTimestamp"]).timestamp()
            if (event["verb"], ref.get("resource"), ref.get("subresource")) == ("patch", "pods", "status"):
                words.append(at)
            elif event["verb"] in ("create", "patch") and ref.get("resource") == "nodeclaims":
                of_scheduler = {"claim_after_first_s": words[0], "claim_after_last_s": words[-1]} if words else {}
                times = {"first_claim_s": began, **of_scheduler}
                return {what: round(at - since, 2) for what, since in times.items()}
        return {}

    def _others(self) -> float:
        """Processor seconds that neither the plane nor the controller nor this process has used since the start."""
        ticks = [int(tick) for tick in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        ours = sum(cpu_seconds(pid) for pid in self.plane.pids()) + self.controller.cpu_seconds() + time.process_time()
        return busy - ours


def measure(
    name: str, workload: dict[str, Any], seconds: float, scale_in: float, flags: list[str], kept: Path | None
) -> dict[str, Any]:
    binaries = assets()
    if binaries is None:
        raise SystemExit(f"benchmarks/controlplane.py {CONDITION}")
    before = {"load": round(os.getloadavg()[0], 1), "baseline_seconds": round(baseline(), 6)}
    with tempfile.TemporaryDirectory(prefix="kerf-controlplane-") as temporary:
        folder = Path(temporary)
        plane = ControlPlane(binaries, folder / "plane", audit=True)
        controller = Kerf(plane, folder, *flags) if name == KERF else Karpenter(plane, folder)
        run = Run(plane, controller, "kerf/" if name == KERF else Karpenter.agent)
        try:
            plane.start()
            run.ready()
            found = {"controller": name, "pods": _pods(workload), **run.scale_out(workload, seconds), **before}
            if scale_in:
                found["scale_in"] = run.scale_in(workload, scale_in)
            controller.stop()
            found["requests_of_all"] = run.of_all()
            if isinstance(controller, Kerf):
                found["verified"] = "same" in controller.verify()
                if kept is not None:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(controller.record, kept)
            else:
                found["version"] = controller.version
            return found
        finally:
            if controller.running:
                controller.kill()
            plane.stop()


def _pods(workload: dict[str, Any]) -> int:
    return sum(item["spec"]["replicas"] for item in workload["items"] if item["kind"] == "Deployment")


def _price(nodes: list[dict[str, Any]]) -> float:
    return round(sum(float(node["metadata"]["labels"].get(PRICE, 0)) for node in nodes), 4)


def _at(prices: list[tuple[float, float]], at: float) -> float:
    return next((price for when, price in reversed(prices) if when <= at), prices[0][1])


def _mean(prices: list[tuple[float, float]]) -> float:
    """Over time: what the scale-in's hours would have cost an hour."""

    areas = (price * (until - since) for (since, price), (until, _) in pairwise(prices))
    return sum(areas) / (prices[-1][0] - prices[0][0])


def _until(what: Any, seconds: float) -> Any:
    """The first truthy result, or the last one when the time is up."""
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="kerf, or Karpenter, on a real control plane with KWOK nodes")
    parser.add_argument("--controller", choices=(KERF, KARPENTER, "both"), default=KERF)
    parser.add_argument("--workload", type=Path, default=WORKLOAD)
    parser.add_argument("--seconds", type=float, default=180, help="how long to wait for all pods")
    parser.add_argument("--scale-in", type=float, default=0, metavar="SECONDS", help="follow a scale-in for so long")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument(
        "--record", type=Path, metavar="FOLDER", help="where kerf's records are kept: 1.kerf, 2.kerf, …"
    )
    parser.add_argument("--no-nomination", action="store_true", help="leave pods' status.nominatedNodeName alone")
    parser.add_argument("--no-bursts", action="store_true", help="wait for the scheduler's word on every pod")
    parser.add_argument("--json", action="store_true", help="print one JSON object a run, a line each")
    asked = parser.parse_args()
    workload = json.loads(asked.workload.read_text())
    flags = ["--no-nominate"] if asked.no_nomination else []
    if asked.no_bursts:
        flags.append("--batch-enough-pods=0")
    missed = 0
    names = ((KARPENTER, KERF) if asked.controller == "both" else (asked.controller,)) * asked.runs
    for number, name in enumerate(names, start=1):
        kept = asked.record / f"{number}.kerf" if asked.record else None
        figures = measure(name, workload, asked.seconds, asked.scale_in, flags, kept)
        print(json.dumps(figures) if asked.json else json.dumps(figures, indent=2), flush=True)
        missed += figures["all_running_s"] is None
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
