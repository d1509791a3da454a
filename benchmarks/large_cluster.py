"""kerf beside a large cluster: what it takes of memory, and whether it goes on answering while it decides.

    python benchmarks/large_cluster.py [--nodes 5000] [--pods 50000] [--seconds 120] [--half-filled] [--explorer]

An API server that only serves these objects (HTTP on 127.0.0.1, in this process) stands for the cluster: Nodes of
`c-2x`, their NodeClaims, and pods as real ones are, which fill them. `kerf run` takes office with an empty record, so
it adopts all NodeClaims, and looks for moves. Nothing that it then asks for comes true. With `--half-filled` the nodes
have 8 CPUs and the pods are of 40 sizes, as in disruption.py's `pass`: nodes may go, so a pass has much to do. `--json`
prints one line.

`synced_s` is until /readyz says so, `passes_s` when each disruption pass began, and `entries` how many entries the
record then had; `memory_synced_mb`, `memory_mb` and `memory_peak_mb` what was resident when synced, in the end, and at
most. `lease_gap_s` is the longest time between two renewals of the Lease (lost after 10; every 2 s where kerf is idle),
`pass_s` how long the longest pass took until its decision was in the record, `pass_lease_gap_s` the longest time in it
without a renewal, and `ready_max_s` the longest that /readyz let somebody wait. The API server of this process, which
serves megabytes a page, has its part in these.

With `--explorer` a `kerf ui` of the same record runs beside it, as the chart has it, and is asked without a pause as
soon as kerf is synced; `explorer_answers` is how many answers it gave.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.scheduling import baseline
from benchmarks.ui import serving
from benchmarks.watch import pod
from kerf.adapters.store.open import AnyStore, open_record
from kerf.engine.errors import KerfError
from kerf.engine.record.decisions import Decision, ProposedMovesResult

TARGET_MB = 1000.0
ZONES = "a", "b", "c", "d"
LONG_AGO = "2026-01-01T00:00:00Z"
Document = dict[str, Any]


class Kind(Struct, frozen=True):
    """Of the nodes: an instance type, and what it has."""

    name: str
    capacity: dict[str, str]
    allocatable: dict[str, str]


FULL = Kind(
    "c-2x-amd64-linux",
    {"cpu": "2", "memory": "4Gi", "pods": "32", "ephemeral-storage": "20Gi"},
    {"cpu": "1900m", "memory": "4086Mi", "pods": "32", "ephemeral-storage": "20Gi"},
)
HALF_FILLED = Kind(
    "c-8x-amd64-linux",
    {"cpu": "8", "memory": "16Gi", "pods": "128", "ephemeral-storage": "20Gi"},
    {"cpu": "7900m", "memory": "16374Mi", "pods": "128", "ephemeral-storage": "20Gi"},
)


def labels(kind: Kind, number: int) -> dict[str, str]:
    return {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "karpenter.kwok.sh/kwoknodeclass": "default",
        "node.kubernetes.io/instance-type": kind.name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": f"node-{number}",
        "topology.kubernetes.io/zone": f"test-zone-{ZONES[number % 4]}",
    }


def node(kind: Kind, number: int) -> Document:
    kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    conditions = [
        {"type": each, "status": str(each == "Ready"), "reason": "x" * 20, "message": "x" * 60,
         "lastHeartbeatTime": LONG_AGO, "lastTransitionTime": LONG_AGO}
        for each in kinds
    ]  # fmt: skip
    images = [
        {"names": [f"registry.example/image-{image}@sha256:{'0' * 64}"], "sizeBytes": image} for image in range(20)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(f"node-{number}", f"node-uid-{number}", labels(kind, number)),
        "spec": {"providerID": f"kwok://node-{number}"},
        "status": {"capacity": kind.capacity, "allocatable": kind.allocatable, "conditions": conditions,
                   "images": images, "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"}},
    }  # fmt: skip


def claim(kind: Kind, number: int) -> Document:
    kinds = ("Launched", "Registered", "Initialized", "Ready")
    true = [{"type": each, "status": "True", "reason": each, "lastTransitionTime": LONG_AGO} for each in kinds]
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [kind.name]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {**_metadata(f"claim-{number}", f"claim-uid-{number}", labels(kind, number)),
                     "finalizers": ["karpenter.sh/termination"]},
        "spec": {"nodeClassRef": CLASS_REF, "requirements": [requirement], "expireAfter": "Never",
                 "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}},
        "status": {"providerID": f"kwok://node-{number}", "nodeName": f"node-{number}", "capacity": kind.capacity,
                   "allocatable": kind.allocatable, "conditions": true},
    }  # fmt: skip


def _metadata(name: str, uid: str, labelled: dict[str, str]) -> Document:
    return {"name": name, "uid": uid, "resourceVersion": "1", "creationTimestamp": LONG_AGO, "labels": labelled}


def running(kind: Kind, number: int, nodes: int) -> Document:
    made = pod(number, "running", number + 1)
    made["spec"]["nodeName"] = f"node-{number % nodes}"
    if kind is HALF_FILLED:
        size = 1 + number * 17 % 40
        requests = {"cpu": f"{10 * size}m", "memory": f"{16 * size}Mi"}
        made["spec"]["containers"][0]["resources"]["requests"] = requests
        made["metadata"]["labels"]["app"] = f"app-{size}"
    return made


CLASS_REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
POOL: Document = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default", "uid": "pool-uid", "resourceVersion": "1", "creationTimestamp": LONG_AGO},
    "spec": {
        "template": {"spec": {"nodeClassRef": CLASS_REF, "expireAfter": "Never", "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}},
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
    },
}  # fmt: skip
NODE_CLASS = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default", "uid": "class-uid", "resourceVersion": "1", "creationTimestamp": LONG_AGO},
}


class Api:
    """Serves the objects page by page; takes every write and forgets it, but the Lease's."""

    def __init__(self, nodes: int, pods: int, kind: Kind) -> None:
        self.renewed: list[float] = []
        self._lease: Document = {}
        self._version = 1
        self._nodes, self._pods, self._kind = nodes, pods, kind

    def items(self, path: str, start: int, end: int) -> tuple[Iterator[Document], int]:
        def of(count: int, make: Any) -> tuple[Iterator[Document], int]:
            return (make(number) for number in range(start, min(end, count))), count

        match path:
            case "/api/v1/pods":
                return of(self._pods, lambda number: running(self._kind, number, self._nodes))
            case "/api/v1/nodes":
                return of(self._nodes, partial(node, self._kind))
            case "/apis/karpenter.sh/v1/nodeclaims":
                return of(self._nodes, partial(claim, self._kind))
            case "/apis/karpenter.sh/v1/nodepools":
                return of(1, lambda _: POOL)
            case "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses":
                return of(1, lambda _: NODE_CLASS)
            case _:
                return iter(()), 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if "/leases" in request.path:
            return self._on_lease(request, body)
        if request.method != "GET":
            return web.json_response({"metadata": {"uid": "some", "resourceVersion": "2"}})
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.sleep(3600)
            return response
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "36"})
        start = int(request.query.get("continue", "0"))
        found, count = self.items(request.path, start, start + int(request.query.get("limit", "500")))
        items, end = list(found), start + int(request.query.get("limit", "500"))
        more = str(end) if end < count else ""
        return web.json_response({"metadata": {"resourceVersion": "1", "continue": more}, "items": items})

    def _on_lease(self, request: web.Request, body: bytes) -> web.Response:
        if request.method == "GET" and not self._lease:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        if request.method != "GET":
            self._version += 1
            self._lease = json.loads(body)
            self._lease["metadata"]["resourceVersion"] = str(self._version)
            self.renewed.append(time.monotonic())
        return web.json_response(self._lease)


async def measure(nodes: int, pods: int, seconds: float, *, half_filled: bool, explorer: bool) -> dict[str, Any]:
    loop_seconds = baseline()
    api = Api(nodes, pods, HALF_FILLED if half_filled else FULL)
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(prefix="kerf-large-") as folder:
        try:
            figures = await _beside(Path(folder), port, api, seconds, explorer)
        finally:
            await runner.cleanup()
    return {"nodes": nodes, "pods": pods, **figures, "target_mb": TARGET_MB, "baseline_seconds": round(loop_seconds, 6)}


async def _beside(folder: Path, port: int, api: Api, seconds: float, explorer: bool) -> dict[str, Any]:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
    }  # fmt: skip
    (folder / "kubeconfig").write_text(json.dumps(config))
    probe = _free_port()
    record = folder / "record.kerf"
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kerf", "run", "--store", f"sqlite://{record}", "--kubeconfig",
            str(folder / "kubeconfig"), stdout=log, stderr=log,
            env={**os.environ, "METRICS_PORT": "0", "HEALTH_PROBE_PORT": str(probe), "LOG_LEVEL": "error"},
        )  # fmt: skip
    began, ahead = time.monotonic(), time.time() - time.monotonic()
    memory: list[float] = []
    waits: list[float] = []
    growth = Growth(record)
    synced, at_sync = 0.0, 0.0
    asking: asyncio.Future[int] | None = None
    async with aiohttp.ClientSession() as session:
        while time.monotonic() - began < seconds and process.returncode is None:
            memory.append(_resident(process.pid))
            growth.look()
            asked = time.monotonic()
            ready = await _answers(session, probe)
            if ready is not None:
                waits.append(time.monotonic() - asked)
            if ready and not synced:
                synced, at_sync = time.monotonic() - began, memory[-1]
                asking = (
                    asyncio.ensure_future(asyncio.to_thread(_ask, record, folder, began + seconds))
                    if explorer
                    else None
                )
            await asyncio.sleep(0.2)
    memory.append(_resident(process.pid))
    renewed = list(api.renewed)
    if process.returncode is not None:
        raise SystemExit(f"kerf has ended:\n{(folder / 'log').read_text()[-3000:]}")
    process.kill()
    await process.wait()
    passes, entries = growth.passes(ahead)
    longest = max(passes, key=lambda each: each.end - each.begin, default=Pass(0.0, 0.0, 0))
    gaps = [(before, after) for before, after in pairwise(renewed)]
    during = [min(after, longest.end) - max(before, longest.begin) for before, after in gaps]
    return {
        **({"explorer_answers": await asking} if asking is not None else {}),
        "synced_s": round(synced, 1),
        "memory_synced_mb": at_sync,
        "memory_mb": memory[-1],
        "memory_peak_mb": max(memory),
        "passes_s": [f"{each.begin - began:.1f}: {each.moves} moves" for each in passes],
        "pass_s": round(longest.end - longest.begin, 1),
        "pass_lease_gap_s": round(max(during, default=0.0), 2),
        "entries": entries,
        "lease_gap_s": round(max((after - before for before, after in gaps), default=0.0), 2),
        "ready_max_s": round(max(waits, default=0.0), 2),
        "record_mb": round(record.stat().st_size / (1 << 20), 1),
    }


def _ask(record: Path, folder: Path, until: float) -> int:
    """Asks an explorer of the record until then; how many answers it gave."""
    answers = 0
    with serving(record, folder) as server:
        for question in cycle(("record", "status", "log", "findings", "timeline")):
            if time.monotonic() > until:
                return answers
            server.ask(question)
            answers += 1
    return answers


async def _answers(session: aiohttp.ClientSession, port: int) -> bool | None:
    """What /readyz says; None when nobody listens yet."""
    try:
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return None


class Pass(Struct):
    """A disruption pass: from its turn's begin until its decision was in the record, in monotonic seconds."""

    begin: float
    end: float
    moves: int


class Growth:
    """When the record had so many entries: `look` at it now and then."""

    def __init__(self, record: Path) -> None:
        self._record, self._seen = record, [(time.monotonic(), 0)]
        self._store: AnyStore | None = None

    def look(self) -> None:
        if self._store is None and not self._record.exists():
            return
        if self._store is None:
            try:
                self._store = open_record(f"sqlite://{self._record}", "read")
            except KerfError:
                return  # it is just being made
        if (position := self._store.last_position()) > self._seen[-1][1]:
            self._seen.append((time.monotonic(), position))

    def passes(self, ahead: float) -> tuple[list[Pass], int]:
        """All passes, and how many entries there are. Wall time is so far ahead of monotonic time."""
        self.look()
        assert self._store is not None
        found = []
        for entry in self._store.scan():
            if isinstance(entry.payload, Decision) and isinstance(entry.payload.result, ProposedMovesResult):
                end = next(at for at, position in self._seen if position >= entry.position)
                found.append(Pass(entry.payload.now / 1000 - ahead, end, len(entry.payload.result.proposed)))
        self._store.close()
        return found, self._seen[-1][1]


def _resident(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 1)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(description="kerf beside a large cluster")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--half-filled", action="store_true", help="large nodes with small pods: some may go")
    parser.add_argument("--explorer", action="store_true", help="with an explorer beside it that is asked all the time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    figures = asyncio.run(
        measure(asked.nodes, asked.pods, asked.seconds, half_filled=asked.half_filled, explorer=asked.explorer)
    )
    print(json.dumps(figures, indent=None if asked.json else 2))
    return 0 if figures["memory_peak_mb"] < TARGET_MB else 1


if __name__ == "__main__":
    raise SystemExit(main())
