"""How fast a watch of pods is read: from the bytes that an API server sends to observations.

    python benchmarks/watch.py [--pods 5000] [--runs 5] [--json]

Each run reads a life of every pod through a Reflector, on one core: added, found unschedulable, bound, running. Pods
have what real ones carry: managed fields, volumes, tolerations, statuses. `distinct` is how many shapes there are among
them. `events_per_cpu_s` counts the processor's time only: the figure of a core that has nothing else to do.
`client_events_per_s` reads the same frames with the official client's typed models, where `--peer` is given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.scheduling import baseline
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.watch.reflector import Reflector
from kerf.adapters.kubernetes.watch.watched_kinds import PODS
from kerf.engine.record.observations import Observation

TARGET = 40_000
SHAPES = 50
PIECE = 1 << 18  # bytes that arrive together, at most
_TIME = "2026-01-01T00:00:00Z"


def pod(number: int, phase: str, version: int) -> dict[str, Any]:
    app = f"app-{number % SHAPES}"
    bound = phase in ("bound", "running")
    conditions = [{"type": "PodScheduled", "status": "True" if bound else "False", "lastTransitionTime": _TIME}]
    if phase == "unschedulable":
        conditions[0] |= {"reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu. " * 2}
    if phase == "running":
        kinds = ("Initialized", "Ready", "ContainersReady")
        conditions += [{"type": kind, "status": "True", "lastTransitionTime": _TIME} for kind in kinds]
    managed: dict[str, Any] = {f"f:field-{index}": {"f:name": {}, "f:value": {}} for index in range(30)}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"{app}-{number:06}",
            "generateName": f"{app}-",
            "namespace": "default",
            "uid": f"6b1c0e66-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "creationTimestamp": _TIME,
            "labels": {"app": app, "pod-template-hash": f"{number % SHAPES:08x}"},
            "annotations": {"checksum/config": "0" * 64},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
            ],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": managed}],
        },
        "spec": {
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "containers": [
                {
                    "name": "c",
                    "image": "registry.example/app:1.2.3",
                    "command": ["/app"],
                    "env": [{"name": f"VARIABLE_{index}", "value": "x" * 20} for index in range(10)],
                    "resources": {"requests": {"cpu": f"{100 + number % SHAPES}m", "memory": "256Mi"}},
                    "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                }
            ],
            "nodeName": f"node-{number % 500}" if bound else "",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "priority": 0,
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 300}
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Running" if phase == "running" else "Pending", "conditions": conditions},
    }  # fmt: skip


def pieces(pods: int) -> tuple[list[bytes], int]:
    """The bytes of a watch, cut as a connection cuts them but at ends of lines, and how many frames they hold."""
    lines, version = [], 0
    for kind, phase in (
        ("ADDED", "new"),
        ("MODIFIED", "unschedulable"),
        ("MODIFIED", "bound"),
        ("MODIFIED", "running"),
    ):
        for number in range(pods):
            version += 1
            frame = {"type": kind, "object": pod(number, phase, version)}
            lines.append(json.dumps(frame, separators=(",", ":")).encode())
    found: list[bytes] = []
    taken: list[bytes] = []
    size = 0
    for line in lines:
        taken.append(line)
        size += len(line)
        if size >= PIECE:
            found.append(b"\n".join(taken))
            taken, size = [], 0
    return [*found, b"\n".join(taken)] if taken else found, len(lines)


def read(data: list[bytes]) -> tuple[float, float, int]:
    """Seconds, seconds of the processor, and how many observations came of it."""
    told: list[Observation] = []

    async def run() -> tuple[float, float]:
        nowhere: Session = None  # type: ignore[assignment]  # nothing is asked of it: the bytes are here
        reflector = Reflector(nowhere, PODS, told.extend)
        started, used = time.perf_counter(), time.process_time()
        for piece in data:
            reflector.take(piece)
        return time.perf_counter() - started, time.process_time() - used

    return *asyncio.run(run()), len(told)


def read_by_client(data: list[bytes], most: int) -> float:
    """Events per second of the official client's typed models, over the first `most` frames."""
    from kubernetes.client import ApiClient
    from kubernetes.client.models.v1_pod import V1Pod

    frames = [json.loads(line) for line in b"\n".join(data).split(b"\n")[:most]]
    client: Any = ApiClient()
    started = time.perf_counter()
    for frame in frames:
        V1Pod.from_dict(client.sanitize_for_serialization(frame["object"]))
    return len(frames) / (time.perf_counter() - started)


def measure(pods: int, runs: int, *, peer: bool) -> dict[str, Any]:
    data, frames = pieces(pods)
    results = [read(data) for _ in range(runs)]
    if {told for *_, told in results} != {frames}:
        raise SystemExit("not every event was told: the benchmark or the reflector is wrong")
    seconds, used = min(result[0] for result in results), min(result[1] for result in results)
    return {
        "pods": pods,
        "events": frames,
        "distinct": min(SHAPES, pods),
        "bytes_per_event": sum(map(len, data)) // frames,
        "events_per_s": round(frames / seconds),
        "events_per_cpu_s": round(frames / used),
        "first_events_per_s": round(frames / results[0][0]),
        "seconds": round(seconds, 6),
        "client_events_per_s": round(read_by_client(data, 300)) if peer else None,
        "baseline_seconds": round(baseline(), 6),
        "target_events_per_s": TARGET,
        "python": platform.python_version(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast a watch of pods is read")
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", action="store_true", help="the official client's typed models beside it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    if asked.pods < 1 or asked.runs < 1:
        parser.error("--pods and --runs are at least 1")
    figures = measure(asked.pods, asked.runs, peer=asked.peer)
    if asked.json:
        print(json.dumps(figures))
    else:
        width = max(map(len, figures))
        print("\n".join(f"{name:<{width}}  {value}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
