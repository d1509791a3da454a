"""Scrapers that do not read, do not ask, or ask too much: what they cost is bounded, and their connections end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import aiohttp
import pytest

from kerf.adapters.kubernetes.reviewed_access import ReviewedAccess
from kerf.adapters.manager.metrics import server as server_module
from kerf.adapters.manager.metrics.server import MAX_CONNECTIONS, PIECE, BoundedServer, MetricsServer
from kerf.adapters.manager.metrics.telemetry import Telemetry
from tests.support.servers.fake_kubernetes import serving
from tests.support.servers.reviews import knows

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="function")]
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: kerf\r\n\r\n"
TEXT = b"x" * (8 << 20)


class Metrics:
    """What a large cluster says: more than sockets hold."""

    async def metrics(self) -> list[bytes]:
        return [TEXT, b"age 0\n"]

    def hangs(self) -> None:
        return None


class Ports:
    """A server on a free port, and sockets to it."""

    def __init__(self, access: ReviewedAccess | None = None) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port: int = one.getsockname()[1]
        self.serving = MetricsServer(
            cast(Telemetry, Metrics()), metrics_port=self.port, health_port=self.port, access=access
        )
        self.sockets: list[socket.socket] = []

    @property
    def server(self) -> BoundedServer:
        (server,) = self.serving.servers
        return server

    async def connect(self, data: bytes = b"", *, buffer: int = 4096) -> socket.socket:
        """A connection that has sent data. It reads nothing, and its kernel keeps little for it."""
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        one.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(one, ("127.0.0.1", self.port))
        await loop.sock_sendall(one, data)
        self.sockets.append(one)
        return one

    def buffered(self) -> int:
        """Bytes that wait in this process to be sent."""
        transports = [connection.transport for connection in self.server.open_connections()]
        return sum(cast(asyncio.Transport, transport).get_write_buffer_size() for transport in transports)


@asynccontextmanager
async def opened(access: ReviewedAccess | None = None) -> AsyncIterator[Ports]:
    ports = Ports(access)
    await ports.serving.open()
    try:
        yield ports
    finally:
        for one in ports.sockets:
            one.close()
        await ports.serving.close()


async def rest(one: socket.socket) -> bytes:
    """What the server still sends until it closes the connection."""
    loop, found = asyncio.get_running_loop(), b""
    async with asyncio.timeout(60):
        while True:
            try:
                piece = await loop.sock_recv(one, 1 << 20)
            except ConnectionResetError:
                return found
            if not piece:
                return found
            found += piece


async def settled(ports: Ports) -> None:
    """Wait until as many bytes are buffered as before: nothing moves any more."""
    before = -1
    while (now := ports.buffered()) != before:
        before = now
        await asyncio.sleep(0.05)


async def test_forty_scrapers_that_do_not_read_cost_little() -> None:
    """Each kept the whole answer for itself: forty took 1.8 GB."""
    async with opened() as ports:
        for _ in range(40):
            await ports.connect(SCRAPE)
        await settled(ports)
        assert 0 < ports.buffered() <= MAX_CONNECTIONS * PIECE
        assert len(ports.server.open_connections()) == MAX_CONNECTIONS
        assert len(TEXT) > 10 * PIECE


async def test_who_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "ANSWER_TIME", 0.2)
    async with opened() as ports:
        lazy = [await ports.connect(SCRAPE) for _ in range(3)]
        while ports.server.open_connections():
            await asyncio.sleep(0.05)
        assert ports.server.requests_count == len(lazy)
        assert [len(await rest(one)) < len(TEXT) for one in lazy] == [True] * 3


@pytest.mark.parametrize("sent", [b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\nHost: kerf\r\n"])
async def test_who_does_not_ask_is_cut_off(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """Also one who sends the header drop by drop: the time does not begin anew."""
    monkeypatch.setattr(server_module, "REQUEST_TIME", 0.3)
    async with opened() as ports:
        idle = await ports.connect(sent)

        async def drip() -> None:
            loop = asyncio.get_running_loop()
            while sent:
                await loop.sock_sendall(idle, b"x")
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        assert await rest(idle) == b""
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"".join(b"X%d: x\r\n" % n for n in range(500)) + b"\r\n",
        b"\x16\x03\x01\x00",
    ],
    ids=["line", "header", "headers", "TLS"],
)
async def test_a_request_that_is_too_large_or_none_is_refused(
    request_: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """In few bytes, and without a word in kerf's log."""
    async with opened() as ports:
        answer = await rest(await ports.connect(request_))
        assert answer == b"" or answer.startswith(b"HTTP/1.0 400"), answer[:100]
        assert len(answer) < 1000
        assert (caplog.text, *capfd.readouterr()) == ("", "", "")


async def test_a_body_and_a_second_request_are_not_read() -> None:
    async with opened() as ports:
        head = SCRAPE[:-2] + b"Content-Length: 1000000000\r\n\r\n"
        answer = await rest(await ports.connect(head.replace(b"/metrics", b"/healthz") + b"x" * 100_000))
        assert answer.count(b"HTTP/1.1 200") == 1
        answer = await rest(await ports.connect(SCRAPE.replace(b"/metrics", b"/healthz") * 50))
        assert answer.count(b"HTTP/1.1 200") == 1


async def test_one_connection_too_many_takes_the_place_of_the_oldest_that_asks_nothing() -> None:
    """A kubelet that asks whether kerf lives must get in."""
    async with opened() as ports:
        idle = [await ports.connect() for _ in range(MAX_CONNECTIONS)]
        answer = await rest(await ports.connect(SCRAPE.replace(b"/metrics", b"/healthz")))
        assert answer.endswith(b"ok\n")
        assert await rest(idle[0]) == b""
        assert len(ports.server.open_connections()) == MAX_CONNECTIONS - 1


async def test_where_all_connections_are_being_answered_another_is_sent_away() -> None:
    async with opened() as ports:
        for _ in range(MAX_CONNECTIONS):
            await ports.connect(SCRAPE)
        await settled(ports)
        assert await rest(await ports.connect(SCRAPE)) == b""
        assert len(ports.server.open_connections()) == MAX_CONNECTIONS


async def test_one_who_reads_gets_everything_also_beside_those_who_do_not() -> None:
    async with opened() as ports:
        for _ in range(MAX_CONNECTIONS - 1):
            await ports.connect(SCRAPE)
        await settled(ports)
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{ports.port}/metrics") as answer:
            assert await answer.read() == TEXT + b"age 0\n"
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


async def test_a_defect_is_told_to_the_scraper_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(self: Metrics) -> list[bytes]:
        raise TypeError("a defect")

    monkeypatch.setattr(Metrics, "metrics", fails)
    async with opened() as ports:
        answer = await rest(await ports.connect(SCRAPE))
        assert answer.startswith(b"HTTP/1.1 500")
        assert b"KERF605: TypeError: a defect" in answer


async def test_the_end_of_the_process_does_not_wait_for_them() -> None:
    async with opened() as ports:
        lazy = await ports.connect(SCRAPE)
        await settled(ports)
        async with asyncio.timeout(30):
            await ports.serving.close()
        assert len(await rest(lazy)) < len(TEXT)


@pytest.mark.parametrize(("allowed", "status"), [(True, 200), (False, 403)])
async def test_metrics_may_be_for_those_alone_whom_the_api_server_lets_read_them(allowed: bool, status: int) -> None:
    """Probes are for everybody: a kubelet has no token."""
    asked = (("/metrics", "Bearer x"), ("/metrics", ""), ("/healthz", ""))
    found = []
    async with (
        serving(knows(allowed=allowed)) as session,
        opened(ReviewedAccess(session, "/metrics")) as ports,
        aiohttp.ClientSession() as client,
    ):
        for path, token in asked:
            url = f"http://127.0.0.1:{ports.port}{path}"
            async with client.get(url, headers={"Authorization": token}) as answer:
                found.append(answer.status)
    assert found == [status, 401, 200]
