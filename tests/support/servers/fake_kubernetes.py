"""An API server of one collection that does what a test tells it to: real HTTP on 127.0.0.1, no Kubernetes behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from kerf.adapters.kubernetes.session import Session

Document = dict[str, Any]


class FakeApi:
    """`pages` answers lists (in order, the last one again and again); each watch is a queue of lines: a document is a
    frame, bytes go out as they are, None ends the watch. `answers` holds (status, body) for requests by
    "METHOD path"; all requests are kept in `asked`."""

    def __init__(self) -> None:
        self.pages: list[Document] = []
        self.watches: list[asyncio.Queue[Document | bytes | None]] = [asyncio.Queue()]
        self.answers: dict[str, list[tuple[int, Document]]] = {}
        self.refuse_watches: list[int] = []  # HTTP statuses of the next watches
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.forwards_to = 0  # the port on 127.0.0.1 that each forwarded port of a pod leads to
        self._watches = 0

    def listing(self, *items: Document, version: str = "100", more: str = "") -> None:
        self.pages.append({"metadata": {"resourceVersion": version, "continue": more}, "items": list(items)})

    def tell(self, kind: str, item: Document) -> None:
        self.watches[-1].put_nowait({"type": kind, "object": item})

    def end_watch(self) -> None:
        """The watch under way ends; the next one has a queue of its own."""
        ending = self.watches[-1]
        self.watches.append(asyncio.Queue())
        ending.put_nowait(None)

    def lists(self) -> list[dict[str, str]]:
        """The queries of the lists asked for."""
        return [query for method, _, query, _ in self.asked if method == "GET" and "watch" not in query]

    def watched_from(self) -> list[str]:
        return [query["resourceVersion"] for _, _, query, _ in self.asked if "watch" in query]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append((request.method, request.path, dict(request.query), json.loads(body) if body else None))
        self.headers.append(dict(request.headers))
        if "watch" in request.query:
            return await self._watch(request)
        if request.path.endswith("/portforward") and self.forwards_to:
            return await self._forward(request)
        scripted = self.answers.get(f"{request.method} {request.path}")
        if scripted:
            status, found = scripted.pop(0) if len(scripted) > 1 else scripted[0]
            return web.json_response(found, status=status)
        if not self.pages:
            return web.json_response({"kind": "Status", "message": "nothing here", "code": 404}, status=404)
        return web.json_response(self.pages.pop(0) if len(self.pages) > 1 else self.pages[0])

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        """As the kubelet does: the first message of each channel names the port."""
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        port = int(request.query["ports"]).to_bytes(2, "little")
        for channel in (b"\0", b"\1"):
            await socket.send_bytes(channel + port)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.forwards_to)
        except OSError:
            await socket.send_bytes(b"\1connection refused")
            return socket

        async def down() -> None:
            while data := await reader.read(1 << 16):
                await socket.send_bytes(b"\0" + data)
            await socket.close()

        answering = asyncio.create_task(down())
        async for message in socket:
            writer.write(message.data[1:])
        answering.cancel()
        writer.close()
        return socket

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        if self.refuse_watches:
            status = self.refuse_watches.pop(0)
            return web.json_response({"kind": "Status", "message": "no", "code": status}, status=status)
        queue = self.watches[min(self._watches, len(self.watches) - 1)]
        self._watches += 1
        response = web.StreamResponse()
        await response.prepare(request)
        while (line := await queue.get()) is not None:
            await response.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        return response


@asynccontextmanager
async def serving(api: FakeApi) -> AsyncIterator[Session]:
    """The fake on a port of its own, and a session with it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    configuration = Configuration(host=f"http://{host}:{port}", api_key={"BearerToken": "Bearer secret"})
    session = Session(configuration)
    try:
        yield session
    finally:
        await session.close()
        await runner.cleanup()


def pod(name: str, *, version: str = "1", node: str = "", **status: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version},
        "spec": {"nodeName": node, "containers": [{"name": "c", "env": [{"name": "SECRET", "value": "hush"}]}]},
        "status": status,
    }


def bookmark(version: str) -> Document:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version}}


GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}
