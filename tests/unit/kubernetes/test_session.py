"""Requests under way at a time: each has a connection of its own, and new ones are dear to both sides."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from kerf.adapters.kubernetes.session import MAX_REQUESTS_UNDER_WAY
from tests.support.servers.fake_kubernetes import FakeApi, serving

pytestmark = pytest.mark.real_time


class Holding(FakeApi):
    """Answers nobody before `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way = 0
        self.go = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.under_way += 1
        await self.go.wait()
        self.under_way -= 1
        return await super().handle(request)


@pytest.mark.asyncio(loop_scope="function")
async def test_so_many_requests_are_under_way_and_the_lease_passes_by() -> None:
    api = Holding()
    api.listing()
    async with serving(api) as session:
        asked = [asyncio.create_task(session.request("GET", f"/things/{n}")) for n in range(MAX_REQUESTS_UNDER_WAY + 8)]
        async with asyncio.timeout(10):
            while api.under_way < MAX_REQUESTS_UNDER_WAY:
                await asyncio.sleep(0.01)
        lease = asyncio.create_task(session.request("GET", "/lease", limited=False))
        async with asyncio.timeout(10):
            while api.under_way < MAX_REQUESTS_UNDER_WAY + 1:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert api.under_way == MAX_REQUESTS_UNDER_WAY + 1
        api.go.set()
        assert all(answer.ok for answer in await asyncio.gather(lease, *asked))
        assert len(api.asked) == MAX_REQUESTS_UNDER_WAY + 9
