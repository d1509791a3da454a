"""Connections to a port of a pod, through the API server, as `kubectl port-forward` makes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
from msgspec import Struct

from kerf.adapters.kubernetes.errors import Unreachable
from kerf.adapters.kubernetes.session import Session
from kerf.engine.errors import KerfError

PROTOCOL = "v4.channel.k8s.io"
_DATA, _FAULT = b"\x00", b"\x01"  # the channels of the first port; the first message of each names the port
_NAMES_PORT = 2  # bytes
_PIECE = 64 * 1024  # bytes


class PodPort(Struct, frozen=True):
    """A port that a pod listens on."""

    namespace: str
    pod: str
    port: int


class PortForward:
    """`find` names the pod anew for each connection. `fault` says why the last one failed, None if it did not."""

    def __init__(self, session: Session, find: Callable[[], Awaitable[PodPort]]) -> None:
        self._session, self._find = session, find
        self.fault: KerfError | None = None

    @asynccontextmanager
    async def listening(self, place: Path) -> AsyncIterator[None]:
        """Lead each connection to a Unix socket at `place` to the pod."""
        server = await asyncio.start_unix_server(self._connected, place)
        try:
            yield
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = await self._find()
            path = f"/api/v1/namespaces/{target.namespace}/pods/{target.pod}/portforward"
            socket = await self._session.websocket(path, query={"ports": target.port}, protocol=PROTOCOL)
            self.fault = None
            async with socket:
                await _first(_up(reader, socket), _down(socket, writer, f"port {target.port} of pod {target.pod}"))
        except KerfError as error:
            self.fault = error
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def _first(*ways: Awaitable[None]) -> None:
    """Wait until one direction has ended, and end the other."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _up(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    with suppress(OSError):
        while data := await reader.read(_PIECE):
            await socket.send_bytes(_DATA + data)


async def _down(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter, where: str) -> None:
    """Raise Unreachable (KERF602) for what the kubelet says on the second channel: nobody listens there."""
    named: set[bytes] = set()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY:
            return
        channel, data = message.data[:1], message.data[1:]
        if channel not in named:
            named.add(channel)
            data = data[_NAMES_PORT:]
        if channel == _FAULT and data:
            raise Unreachable(data.decode(errors="replace").strip(), where=where, hint="Look at the pod and its log")
        with suppress(OSError):
            writer.write(data)
            await writer.drain()
