"""The HTTP ports of the controller: /metrics, /healthz and /readyz (L-299, L-340).

Whoever reaches a port may ask, so what a connection may cost is bounded: its request, the time until the request is
there, what waits to be sent, and the time that it takes to read the answer. Each connection brings one request.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

from aiohttp import web

from kerf.adapters.kubernetes.reviewed_access import ReviewedAccess
from kerf.adapters.manager.metrics.exposition import CONTENT_TYPE
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.engine.errors import InputError, fault_of

MAX_CONNECTIONS = 32  # of a port at a time
REQUEST_TIME = 5.0  # seconds from the connection to the end of the request's header
ANSWER_TIME = 15.0  # seconds in which an answer has to be read
MAX_LINE, MAX_HEADERS = 4096, 32  # bytes of the request line and of each header, and how many headers
PIECE = 128 * 1024  # bytes: an answer is written piece by piece, the next when the one before has left
METRICS_URL = "/metrics"
PLAIN = "text/plain; charset=utf-8"

_SILENT = logging.Logger("kerf.metrics", logging.CRITICAL)
"""Of aiohttp's: whoever reaches a port could fill kerf's log with what it says of their requests."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class PortInUse(InputError):
    """A port cannot be listened on."""

    code = "KERF341"


class MetricsServer:
    """`open` the ports, `close` them when done. A port of 0 is not opened; one port may serve metrics and probes.
    With `access`, metrics are for those whom the API server lets read them."""

    def __init__(
        self, telemetry: Telemetry, *, metrics_port: int, health_port: int, access: ReviewedAccess | None = None
    ) -> None:
        self._telemetry, self._access = telemetry, access
        self._handlers: dict[int, dict[str, Handler]] = {}
        if metrics_port:
            self._handlers.setdefault(metrics_port, {})[METRICS_URL] = self._metrics
        if health_port:
            self._handlers.setdefault(health_port, {}).update({"/healthz": self._alive, "/readyz": self._ready})
        self.servers: list[BoundedServer] = []
        self._runners: list[web.ServerRunner] = []

    async def open(self) -> None:
        """Raises PortInUse (KERF341)."""
        for port, handlers in self._handlers.items():
            server = BoundedServer(handlers)
            runner = web.ServerRunner(server, shutdown_timeout=1.0)
            self.servers.append(server)
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

    async def _metrics(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._access is not None:
            status = await self._access.check(request.headers.get("Authorization", ""))
            if status != HTTPStatus.OK:
                return await _send(request, status, [f"{status.phrase}\n".encode()])
        return await _send(request, HTTPStatus.OK, await self._telemetry.metrics(), CONTENT_TYPE)

    async def _alive(self, request: web.BaseRequest) -> web.StreamResponse:
        hanging = self._telemetry.hangs()
        if hanging is not None:
            return await _send(request, HTTPStatus.SERVICE_UNAVAILABLE, [f"{hanging}\n".encode()])
        return await _send(request, HTTPStatus.OK, [b"ok\n"])

    async def _ready(self, request: web.BaseRequest) -> web.StreamResponse:
        faults = self._telemetry.faults()
        if faults:
            return await _send(request, HTTPStatus.SERVICE_UNAVAILABLE, [f"{fault}\n".encode() for fault in faults])
        notes = [f"{line}\n".encode() for line in ("ok", *self._telemetry.notes())]
        return await _send(request, HTTPStatus.OK, notes)


class BoundedServer(web.Server):
    """Answers paths over so many connections at a time. One too many closes the oldest that has not brought its
    request; where all others have, that is itself."""

    def __init__(self, handlers: dict[str, Handler]) -> None:
        super().__init__(
            self._answer,
            access_log=None,
            logger=_SILENT,
            keepalive_timeout=REQUEST_TIME,
            lingering_time=0.0,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
            max_headers=MAX_HEADERS,
        )
        self._handlers = handlers
        self._busy: set[object] = set()  # connections whose request is being answered

    def open_connections(self) -> list[web.RequestHandler]:
        """The oldest first."""
        return [connection for connection in self.connections if connection.transport is not None]

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        transport.set_write_buffer_limits(high=0)
        connections = self.open_connections()
        if len(connections) > MAX_CONNECTIONS:
            next(connection for connection in connections if connection not in self._busy).force_close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = self._handlers.get(request.path)
        if handler is None or request.method != "GET":
            status = HTTPStatus.NOT_FOUND if handler is None else HTTPStatus.METHOD_NOT_ALLOWED
            return await _send(request, status, [f"{status.phrase}\n".encode()])
        self._busy.add(request.protocol)
        try:
            return await handler(request)
        except ConnectionError:  # the scraper has gone
            raise
        except Exception as error:
            text = f"{fault_of(error, request.path)}\n".encode()
            return await _send(request, HTTPStatus.INTERNAL_SERVER_ERROR, [text])
        finally:
            self._busy.discard(request.protocol)


async def _send(
    request: web.BaseRequest, status: HTTPStatus, parts: Sequence[bytes], content_type: str = PLAIN
) -> web.StreamResponse:
    """Write an answer and wait until it has left. A reader that takes too long is cut off: what it has not read would
    be kept for it."""
    response = web.StreamResponse(status=status, headers={"Content-Type": content_type})
    response.content_length = sum(map(len, parts))
    response.force_close()
    try:
        async with asyncio.timeout(ANSWER_TIME):
            writer = await response.prepare(request)
            for part in [memoryview(part) for part in parts]:
                for start in range(0, len(part), PIECE):
                    await response.write(part[start : start + PIECE])
                    if writer is not None:
                        await writer.drain()
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    return response
