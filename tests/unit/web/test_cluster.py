"""The explorer in a cluster: who the API server lets read, and the page of a laptop that leads there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubernetes.aio.client.configuration import Configuration

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.kubernetes import reviewed_access
from kerf.adapters.kubernetes.errors import ClusterError, Unreachable
from kerf.adapters.kubernetes.port_forward import PROTOCOL, PortForward
from kerf.adapters.kubernetes.reviewed_access import TOKEN_REVIEWS, ReviewedAccess
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.web.access import Access, token_check
from kerf.adapters.web.app import app
from kerf.adapters.web.cluster.forwarding import (
    ForwardedExplorer,
    NoExplorer,
    NotLetIn,
    explorer_pod,
    forwarding_app,
)
from kerf.adapters.web.cluster.in_cluster import URL
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.serve import listening_on, own_hosts, server
from tests.support.records import stored, whole_life
from tests.support.servers.fake_kubernetes import FakeApi, serving
from tests.support.servers.reviews import knows

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="function")]
PODS = "/api/v1/namespaces/kerf/pods"
TOKEN = "of-the-link"
MINE = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("records") / "life.kerf", whole_life().store)


@pytest.fixture
def reader(record: Path) -> Iterator[RecordReader]:
    with closing(RecordReader(str(record))) as opened:
        yield opened


def pod(name: str, *ports: dict[str, Any], phase: str = "Running", ready: str = "True", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **meta},
        "spec": {"containers": [{"name": "controller"}, {"name": "explorer", "ports": list(ports)}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }


def port(number: int, name: str = "explorer") -> dict[str, Any]:
    return {"name": name, "containerPort": number}


@asynccontextmanager
async def laptop(explorer: ForwardedExplorer) -> AsyncIterator[int]:
    """The port on which the explorer is served on this machine."""
    with closing(listening_on(0)) as listening:
        access = Access(token_check(TOKEN), own_hosts(listening.getsockname()[1]))
        http = server(forwarding_app(explorer, access))
        task = asyncio.create_task(http.serve(sockets=[listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            http.should_exit = True
            await task


@asynccontextmanager
async def in_cluster(api: FakeApi, reader: RecordReader) -> AsyncIterator[tuple[Session, int]]:
    """A connection to the API server, and the port of the explorer that asks it; it is forwarded."""
    with closing(listening_on(0)) as listening:
        number = listening.getsockname()[1]
        async with serving(api) as session:
            http = server(app(reader, Access(ReviewedAccess(session, URL).check, own_hosts(number))))
            task = asyncio.create_task(http.serve(sockets=[listening]))
            api.forwards_to = number
            api.answers[f"GET {PODS}"] = [(200, {"items": [pod("kerf-0", port(number))]})]
            try:
                yield session, number
            finally:
                http.should_exit = True
                await task


@asynccontextmanager
async def forwarded(session: Session, number: int, folder: Path) -> AsyncIterator[ForwardedExplorer]:
    forward = PortForward(session, lambda: explorer_pod(session, "kerf"))
    connector = aiohttp.UnixConnector(str(folder / "explorer"))
    async with (
        forward.listening(folder / "explorer"),
        aiohttp.ClientSession(connector=connector, auto_decompress=False) as client,
    ):
        yield ForwardedExplorer(session, forward, client, f"127.0.0.1:{number}")


async def get(number: int, path: str, headers: dict[str, str]) -> tuple[int, bytes, Any]:
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{number}{path}", headers=headers) as got,
    ):
        return got.status, await got.read(), got.headers


async def test_the_api_server_is_asked_who_reads(reader: RecordReader) -> None:
    api = knows()
    async with in_cluster(api, reader) as (_, number):
        assert (await get(number, "/", {}))[0] == 200, "the page itself tells nothing"
        assert (await get(number, "/api/v1/record", {}))[0] == 401
        assert api.asked == []
        bearer = {"Authorization": "Bearer mine"}
        assert [(await get(number, "/api/v1/record", bearer))[0] for _ in range(3)] == [200] * 3
        assert len(api.asked) == 2, "the answer is kept for a while"
        assert api.asked[1][3]["spec"]["nonResourceAttributes"] == {"path": "/kerf/explorer", "verb": "get"}
        for wrong in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert (await get(number, "/api/v1/record", bearer | wrong))[0] in (421, 403)


@pytest.mark.parametrize(
    ("api", "status"), [(knows(authenticated=False), 401), (knows(allowed=False), 403), (FakeApi(), 503)]
)
async def test_who_may_not_read_is_refused_and_so_is_everybody_while_nobody_knows(
    reader: RecordReader, api: FakeApi, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviewed_access, "REFUSED_PAUSE", 0.0)
    async with in_cluster(api, reader) as (_, number):
        found, body, headers = await get(number, "/api/v1/record", {"Authorization": "Bearer mine"})
        assert found == status
        assert json.loads(body)["error"]["hint"]
        assert headers["Content-Security-Policy"]


async def test_the_laptops_page_is_the_clusters(reader: RecordReader, tmp_path: Path) -> None:
    api = knows()
    async with in_cluster(api, reader) as (session, number), forwarded(session, number, tmp_path) as explorer:
        await explorer.first_look()
        async with laptop(explorer) as here:
            direct = {"Authorization": "Bearer secret"}  # the token of the connection to the API server
            for path in ("/", "/main.js", "/nothing", "/api/v1/status?at=%2B1m", "/api/v1/status?at=never"):
                there, mine = await get(number, path, direct), await get(here, path, MINE)
                assert mine[:2] == there[:2], path
                assert mine[2]["Content-Type"] == there[2]["Content-Type"]
            etag = (await get(here, "/api/v1/record", MINE))[2]["ETag"]
            assert (await get(here, "/api/v1/record", MINE | {"If-None-Match": etag}))[0] == 304
            assert (await get(here, "/api/v1/record", direct))[0] == 401, "the link's token, and no other"
            assert (await get(here, "/api/v1/record", MINE | {"Host": "evil.example"}))[0] == 421
            assert (await get(here, "/", MINE | {"Origin": "http://evil.example"}))[0] == 403
            live = f"http://127.0.0.1:{here}/api/v1/live"
            async with aiohttp.ClientSession() as client, client.get(live, headers=MINE) as news:
                assert await news.content.readline() == b"event: position\n"
    tokens = {asked[3]["spec"]["token"] for asked in api.asked if asked[1] == TOKEN_REVIEWS}
    assert tokens == {"secret"}


async def test_a_token_that_is_not_taken_any_more_is_no_wrong_link(
    reader: RecordReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviewed_access, "REFUSED_PAUSE", 0.0)
    api = knows(authenticated=False)
    async with in_cluster(api, reader) as (session, number), forwarded(session, number, tmp_path) as explorer:
        with pytest.raises(NotLetIn, match="401"):
            await explorer.first_look()
        async with laptop(explorer) as here:
            assert (await get(here, "/api/v1/record", MINE))[0] == 403


async def test_without_a_token_in_the_kubeconfig_nothing_is_asked(reader: RecordReader, tmp_path: Path) -> None:
    api = knows()
    async with in_cluster(api, reader) as (session, number), forwarded(session, number, tmp_path) as explorer:
        session._configuration.api_key = {}
        with pytest.raises(NotLetIn, match="no token"):
            await explorer.first_look()
        assert api.asked == []


async def test_a_port_is_forwarded_through_the_proxy_that_the_kubeconfig_names() -> None:
    """As requests are. A proxy is asked for the whole URL; the fake answers in its place, for a host that there is
    not."""
    api, path = FakeApi(), "/api/v1/namespaces/kerf/pods/kerf-0/portforward"
    with closing(listening_on(0)) as explorer:
        api.forwards_to = explorer.getsockname()[1]
        async with serving(api) as proxy:
            configuration = Configuration(host="http://cluster.invalid", api_key={"BearerToken": "Bearer secret"})
            configuration.proxy = proxy.host
            session = Session(configuration)
            try:
                socket = await session.websocket(path, query={"ports": 80}, protocol=PROTOCOL)
                async with socket:
                    assert (await socket.receive()).data[:1] == b"\0"
            finally:
                await session.close()
    assert [asked[:2] for asked in api.asked] == [("GET", path)]
    assert api.headers[-1]["Host"] == "cluster.invalid"


async def test_why_the_port_is_not_forwarded_is_said(reader: RecordReader, tmp_path: Path) -> None:
    api = knows()
    async with in_cluster(api, reader) as (session, number), forwarded(session, number, tmp_path) as explorer:
        with closing(listening_on(0)) as nobody:
            api.forwards_to = nobody.getsockname()[1]
        with pytest.raises(Unreachable, match="connection refused"):
            await explorer.first_look()
        api.forwards_to = 0  # the fake then refuses, as an API server whose user may not
        with pytest.raises(ClusterError) as refused:
            await explorer.first_look()
        assert refused.value.status == 404
        api.answers[f"GET {PODS}"] = [(403, {"message": "may not list pods"})]
        with pytest.raises(ClusterError, match="may not list pods"):
            await explorer.first_look()


async def test_the_pod_is_a_running_one_whose_port_has_the_name() -> None:
    api = FakeApi()
    pods = [
        pod("a", port(1), phase="Pending"), pod("b", port(2), deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("c", port(3), ready="False"), pod("d", port(4, "http-metrics")), pod("e", port(5)),
    ]  # fmt: skip
    api.answers[f"GET {PODS}"] = [(200, {"items": pods}), (200, {"items": pods[:3]}), (200, {"items": pods[:2]})]
    async with serving(api) as session:
        assert (await explorer_pod(session, "kerf")).pod == "e"
        assert (await explorer_pod(session, "kerf")).pod == "c", "one that is not ready is better than none"
        with pytest.raises(NoExplorer, match="namespace kerf"):
            await explorer_pod(session, "kerf")
