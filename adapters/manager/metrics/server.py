"""The HTTP ports of the controller: /metrics, /healthz and /readyz (L-299, L-340)."""

from __future__ import annotations

from aiohttp import web

from kerf.adapters.manager.metrics.exposition import CONTENT_TYPE
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.engine.errors import InputError


class PortInUse(InputError):
    """A port cannot be listened on."""

    code = "KERF341"


class MetricsServer:
    """`open` the ports, `close` them when done. A port of 0 is not opened; one port may serve metrics and probes."""

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
            return web.Response(status=503, text="".join(f"{fault}\n" for fault in faults))
        return web.Response(text="ok\n")
