"""Who holds the Lease: taking, renewing, losing and releasing it, on an API server that checks versions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from kerf.adapters.kubernetes import lease as module
from kerf.adapters.kubernetes.errors import LeaseLost
from kerf.adapters.kubernetes.lease import Lease
from kerf.adapters.kubernetes.session import Session
from tests.unit.kubernetes.fake_api import FakeApi, serving

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class LeaseApi(FakeApi):
    """Holds one Lease; `down` makes it answer nothing but 503."""

    def __init__(self) -> None:
        super().__init__()
        self.spec: dict[str, Any] | None = None
        self.version = 0
        self.down = False

    def write(self, **spec: Any) -> None:
        """Somebody else writes it."""
        self.spec = {**(self.spec or {}), **spec}
        self.version += 1

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return web.json_response({"message": "down"}, status=503)
        if request.method == "GET":
            return self._found() if self.spec is not None else web.json_response({}, status=404)
        document = await request.json()
        if request.method == "PUT" and document["metadata"]["resourceVersion"] != str(self.version):
            return web.json_response({"message": "conflict"}, status=409)
        if request.method == "POST" and self.spec is not None:
            return web.json_response({"message": "exists"}, status=409)
        self.write(**document["spec"])
        return self._found()

    def _found(self) -> web.Response:
        return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "spec": self.spec})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become hundredths."""
    monkeypatch.setattr(module, "DURATION", 0.15)
    monkeypatch.setattr(module, "RENEW_WITHIN", 0.1)
    monkeypatch.setattr(module, "RETRY", 0.02)


def play(scene: Callable[[LeaseApi, Session], Awaitable[None]]) -> LeaseApi:
    async def run() -> LeaseApi:
        api = LeaseApi()
        async with asyncio.timeout(10), serving(api) as session:
            await scene(api, session)
        return api

    return asyncio.run(run())


def lease(session: Session, identity: str) -> Lease:
    return Lease(session, namespace="kube-system", identity=identity)


def test_one_that_is_not_there_is_made_with_the_reference_s_name() -> None:
    """L-296."""

    async def scene(api: LeaseApi, session: Session) -> None:
        mine = lease(session, "me")
        assert await mine.acquire() == 0
        assert mine.holder == "me"

    api = play(scene)
    assert api.spec is not None
    assert (api.spec["holderIdentity"], api.spec["leaseTransitions"]) == ("me", 0)


def test_a_second_one_waits_until_the_first_is_silent_for_the_whole_duration() -> None:
    """The other's clock does not count: only whether its Lease changes."""

    async def scene(api: LeaseApi, session: Session) -> None:
        api.write(holderIdentity="karpenter", leaseDurationSeconds=1, leaseTransitions=4, renewTime="1999-01-01")
        waiting = asyncio.create_task(lease(session, "me").acquire())
        for _ in range(8):
            await asyncio.sleep(0.2)
            api.write(renewTime="1999-01-01")
            assert not waiting.done()
        assert await waiting == 5

    api = play(scene)
    assert api.spec is not None
    assert (api.spec["holderIdentity"], api.spec["leaseTransitions"]) == ("me", 5)


def test_a_released_one_is_taken_at_once_and_counts_as_a_transition() -> None:
    async def scene(api: LeaseApi, session: Session) -> None:
        first, second = lease(session, "first"), lease(session, "second")
        await first.acquire()
        await first.release()
        assert api.spec is not None
        assert api.spec["holderIdentity"] == ""
        assert await second.acquire() == 1

    play(scene)


def test_it_is_renewed_while_it_is_held() -> None:
    async def scene(api: LeaseApi, session: Session) -> None:
        mine = lease(session, "me")
        await mine.acquire()
        holding = asyncio.create_task(mine.hold())
        before = api.version
        await asyncio.sleep(0.3)
        assert api.version >= before + 3
        assert not holding.done()
        holding.cancel()

    play(scene)


def test_who_finds_another_s_name_in_it_has_lost_it() -> None:
    async def scene(api: LeaseApi, session: Session) -> None:
        mine = lease(session, "me")
        await mine.acquire()
        api.write(holderIdentity="other", leaseDurationSeconds=60)
        with pytest.raises(LeaseLost, match=r"KERF604.*other"):
            await mine.hold()
        await mine.release()
        assert api.spec is not None
        assert api.spec["holderIdentity"] == "other"

    play(scene)


def test_who_cannot_renew_gives_up_before_others_may_take_it() -> None:
    """And one short failure is no reason to."""

    async def scene(api: LeaseApi, session: Session) -> None:
        mine = lease(session, "me")
        await mine.acquire()
        holding = asyncio.create_task(mine.hold())
        api.down = True
        await asyncio.sleep(0.04)
        api.down = False
        await asyncio.sleep(0.15)
        assert not holding.done()
        api.down = True
        with pytest.raises(LeaseLost, match="KERF604"):
            await holding

    play(scene)


def test_of_two_that_ask_together_one_gets_it() -> None:
    async def scene(api: LeaseApi, session: Session) -> None:
        both = [lease(session, "a"), lease(session, "b")]
        asking = [asyncio.create_task(each.acquire()) for each in both]
        done, left = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        named = (api.spec or {})["holderIdentity"]
        (winner,) = [each for each in both if each.holder == named == each.identity]
        holder = asyncio.create_task(winner.hold())
        await asyncio.sleep(0.3)
        assert not holder.done()
        for task in (*left, holder):
            task.cancel()

    play(scene)
