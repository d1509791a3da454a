"""What kerf says of itself over HTTP: /metrics, /healthz and /readyz (L-299, L-340)."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Sequence

from aiohttp import web

import kerf
from kerf.adapters.controller.controller import wall_clock
from kerf.adapters.manager.kubernetes_controller import InCluster
from kerf.adapters.manager.metrics.exposition import CONTENT_TYPE, exposition
from kerf.adapters.manager.metrics.request_metrics import RequestMetrics, process_text
from kerf.adapters.manager.retention import Retaining
from kerf.engine.errors import InputError
from kerf.engine.record.entries import Entry
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.state import State
from kerf.projections.metrics.cluster_gauges import state_families
from kerf.projections.metrics.conditions import ConditionMetrics, condition_families
from kerf.projections.metrics.counter_definitions import PREFIX
from kerf.projections.metrics.counters import Metrics
from kerf.projections.metrics.families import GAUGE, Family
from kerf.projections.metrics.offerings import offering_families

KEPT = 5.0  # seconds that what was scraped is given again: a scrape looks at every pod
PATIENCE = 2.0
"""Seconds that a scrape waits for the end of a turn. A plan for thousands of pods takes longer: then it gets what the
last scrape got, with its age."""


class PortInUse(InputError):
    """A port cannot be listened on."""

    code = "KERF341"


class Telemetry:
    """Told of turns while in office; asked at any time. `state_metrics`: whether pods, nodes and NodePools are told."""

    def __init__(self, *, provider: str, state_metrics: bool) -> None:
        self.requests = RequestMetrics()
        self._provider, self._state_metrics = provider, state_metrics
        self._world: InCluster | None = None
        self._metrics: Metrics | None = None
        self._conditions: ConditionMetrics | None = None
        self._made: tuple[float, bytes] | None = None
        self._reading: tuple[int, int] | None = None
        self.retaining: Retaining | None = None

    def read(self, position: int, last: int) -> None:
        """The record is being read, and that far: kerf is alive, and not ready yet."""
        self._reading = position, last

    def take_office(self, runtime: Runtime) -> None:
        self._reading = None
        self._metrics = Metrics(runtime.state, self._provider)
        self._conditions = ConditionMetrics(runtime.state, self._provider)

    def watch(self, world: InCluster) -> None:
        self._world = world

    def __call__(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if self._metrics is not None and self._conditions is not None:
                self._metrics.apply(entry)
                self._conditions.apply(entry)
        if self._metrics is not None and self._world is not None:
            self._metrics.turned(entries, self._world.controller.took)

    def faults(self) -> list[str]:
        """What keeps kerf from being ready; one that waits for the Lease is ready, as the reference's is (L-340)."""
        world = self._world
        if self._reading is not None:
            return [f"the record is being read: position {self._reading[0]} of {self._reading[1]}"]
        if world is None:
            return []
        found = [f"not listed yet: {each.resource.path}" for each in world.reflectors if not each.listed.is_set()]
        found += [str(each.error) for each in world.reflectors if each.error is not None]
        found += [str(each) for each in world.forbidden]
        if world.runtime.error is not None:
            found.append(str(world.runtime.error))
        return found if found or world.ready else ["the cluster has not been looked at yet"]

    async def metrics(self) -> bytes:
        """Prometheus's text. No turn runs while the state is read."""
        if self._made is not None and time.monotonic() - self._made[0] < KEPT:
            return self._last(*self._made)
        world, metrics = self._world, self._metrics
        families = [_build(), *self._synced(), *self.requests.families()]
        families += self.retaining.families() if self.retaining is not None else []
        if world is None or metrics is None:
            return exposition(families) + process_text()
        if not await _taken(world.controller.between_turns, PATIENCE if self._made is not None else None):
            assert self._made is not None
            return self._last(*self._made)
        try:
            families += metrics.families() + (self._conditions.families() if self._conditions is not None else [])
            families += await asyncio.to_thread(self._gauges, world.runtime.state, metrics)
        finally:
            world.controller.between_turns.release()
        text = await asyncio.to_thread(exposition, families) + process_text()
        self._made = time.monotonic(), text
        return self._last(*self._made)

    def _last(self, made: float, text: bytes) -> bytes:
        age = Family("kerf_metrics_age_seconds", GAUGE, "How long ago the metrics of the state were made.")
        age.set(time.monotonic() - made)
        return text + exposition([age])

    def _gauges(self, state: State, metrics: Metrics) -> list[Family]:
        now = wall_clock()
        found = condition_families(state, now, self._provider) + offering_families(state, now)
        return found + state_families(state, metrics, now) if self._state_metrics else found

    def _synced(self) -> list[Family]:
        """Whether all that is watched has been listed, and whether kerf may act (L-382)."""
        world = self._world
        listed = world is not None and all(each.listed.is_set() for each in world.reflectors)
        synced = Family(PREFIX + "cluster_state_synced", GAUGE, "Whether everything that is watched has been listed.")
        synced.set(float(listed))
        ready = Family("kerf_ready", GAUGE, "Whether kerf sees the cluster, writes its record, and may act.")
        ready.set(float(world is not None and not self.faults()))
        return [synced, ready]


async def _taken(lock: asyncio.Lock, patience: float | None) -> bool:
    """Whether the lock could be taken within so many seconds."""
    try:
        async with asyncio.timeout(patience):
            return await lock.acquire()
    except TimeoutError:
        return False


def _build() -> Family:
    """The constant metric that says which version runs (L-365)."""
    family = Family(PREFIX + "build_info", GAUGE, "What runs.", ("version", "goversion", "goarch", "commit"))
    family.set(1, kerf.__version__, f"python{platform.python_version()}", platform.machine(), "")
    return family


class Serving:
    """Opens the ports; `close` when done. A port of 0 is not opened; one port may serve both."""

    def __init__(self, telemetry: Telemetry, *, metrics_port: int, health_port: int) -> None:
        self._telemetry = telemetry
        self._paths: dict[int, list[web.RouteDef]] = {}
        if metrics_port:
            self._paths.setdefault(metrics_port, []).append(web.get("/metrics", self._metrics))
        if health_port:
            health = [web.get("/healthz", self._alive), web.get("/readyz", self._ready)]
            self._paths.setdefault(health_port, []).extend(health)
        self._runners: list[web.AppRunner] = []

    async def open(self) -> None:
        """Raises PortInUse (KERF341)."""
        for port, routes in self._paths.items():
            app = web.Application()
            app.add_routes(routes)
            runner = web.AppRunner(app, access_log=None, handle_signals=False)
            self._runners.append(runner)
            await runner.setup()
            try:
                await web.TCPSite(runner, port=port).start()
            except OSError as error:
                hint = "Name another with --metrics-port and --health-probe-port, or 0 for none"
                raise PortInUse(str(error), where=f"port {port}", hint=hint) from error

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=await self._telemetry.metrics(), headers={"Content-Type": CONTENT_TYPE})

    async def _alive(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        faults = self._telemetry.faults()
        if faults:
            return web.Response(status=503, text="".join(f"{each}\n" for each in faults))
        return web.Response(text="ok\n")
