"""Who holds the Lease: taking, renewing, losing and releasing it, on an API server that checks versions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kerf.adapters.kubernetes.errors import LeaseLost
from kerf.adapters.kubernetes.lease import Lease
from tests.support.servers.fake_kubernetes import serving
from tests.support.servers.lease_api import LeaseApi

pytestmark = pytest.mark.real_time

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Time:
    """Seconds that pass only when somebody sleeps. `then` holds what happens when so many have passed; `busy` is
    whether the process computes."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.busy = False
        self.then: list[tuple[float, Callable[[], None]]] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        for call in [due for due in self.then if due[0] <= self.now]:
            self.then.remove(call)
            call[1]()

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        self.then.append((self.now + seconds, what))

    def end_after(self, seconds: float) -> None:
        self.after(seconds, _end)


class Over(Exception):
    """The test has seen enough."""


def _end() -> None:
    raise Over


async def play(
    scene: Callable[[LeaseApi, Callable[[str], Lease], Time], Awaitable[None]], told: list[str] | None = None
) -> LeaseApi:
    """`told` gets the holders that somebody had to wait for."""
    waits = (told if told is not None else []).append

    api, time = LeaseApi(), Time()
    async with serving(api) as session:

        def lease(identity: str) -> Lease:
            return Lease(
                session,
                namespace="kube-system",
                identity=identity,
                waits=waits,
                busy=lambda: time.busy,
                clock=time.clock,
                sleep=time.sleep,
            )

        await scene(api, lease, time)
    return api


Make = Callable[[str], Lease]


@pytest.mark.asyncio(loop_scope="function")
async def test_one_that_is_not_there_is_made() -> None:
    """A Lease that does not exist is created, by the name of the setting (L-296)."""

    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        mine = lease("me")
        assert await mine.acquire() == 0
        assert mine.holder == "me"

    api = await play(scene)
    assert api.paths == {PATH, f"{PATH}/karpenter-leader-election"}
    assert (api.spec["holderIdentity"], api.spec["leaseTransitions"]) == ("me", 0)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_second_one_waits_until_the_first_is_silent_for_the_whole_duration() -> None:
    """What the other wrote as its time does not count: only whether its Lease changes."""

    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        api.write(holderIdentity="karpenter", leaseDurationSeconds=15, leaseTransitions=4, renewTime="1999-01-01")
        for renewed in (10, 20, 30):
            time.after(renewed, lambda: api.write(renewTime="1999-01-01"))
        began = time.now
        assert await lease("me").acquire() == 5
        assert 45 <= time.now - began <= 49

    assert (await play(scene)).spec["holderIdentity"] == "me"


@pytest.mark.asyncio(loop_scope="function")
async def test_one_that_waits_says_for_whom_once_for_each_holder() -> None:
    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        api.write(holderIdentity="karpenter", leaseDurationSeconds=15, leaseTransitions=4)
        time.after(10, lambda: api.write(holderIdentity="kerf-other"))
        await lease("me").acquire()

    told: list[str] = []
    await play(scene, told)
    assert told == ["karpenter", "kerf-other"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_released_one_is_taken_at_once_and_counts_as_a_transition() -> None:
    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        first = lease("first")
        await first.acquire()
        await first.release()
        assert api.spec["holderIdentity"] == ""
        began = time.now
        assert await lease("second").acquire() == 1
        assert time.now == began

    await play(scene)


@pytest.mark.asyncio(loop_scope="function")
async def test_it_is_renewed_while_it_is_held() -> None:
    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        mine = lease("me")
        await mine.acquire()
        before, acquired = api.version, api.spec["acquireTime"]
        time.end_after(60)
        with pytest.raises(Over):
            await mine.hold()
        assert 24 <= api.version - before <= 29, "every two seconds"
        assert api.spec["acquireTime"] == acquired

    await play(scene)


@pytest.mark.asyncio(loop_scope="function")
async def test_it_is_renewed_more_often_while_the_process_is_busy() -> None:
    """Beside a turn that takes long each renewal may be late: the longest gap stays under a second (L-341)."""

    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        mine, versions = lease("me"), list[int]()
        await mine.acquire()

        def turn(busy: bool) -> None:
            versions.append(api.version)
            time.busy = busy

        time.after(20, lambda: turn(True))
        time.after(30, lambda: turn(False))
        time.end_after(50)
        with pytest.raises(Over):
            await mine.hold()
        idle, busy, again = versions[0], versions[1] - versions[0], api.version - versions[1]
        assert busy >= 20, "at least every half second"
        assert max(idle, again) <= 12, "as often as ever before and after it"

    await play(scene)


@pytest.mark.asyncio(loop_scope="function")
async def test_who_finds_another_s_name_in_it_has_lost_it() -> None:
    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        mine = lease("me")
        await mine.acquire()
        api.write(holderIdentity="other", leaseDurationSeconds=60)
        with pytest.raises(LeaseLost, match=r"KERF604.*other"):
            await mine.hold()
        await mine.release()
        assert api.spec["holderIdentity"] == "other"

    await play(scene)


@pytest.mark.asyncio(loop_scope="function")
async def test_who_cannot_renew_gives_up_before_others_may_take_it() -> None:
    """A short failure is no reason to; a longer one ends it before the 15 seconds that another waits."""

    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        mine = lease("me")
        await mine.acquire()
        time.after(4, api.fail)
        time.after(9, api.recover)
        time.after(20, api.fail)
        began = time.now
        with pytest.raises(LeaseLost, match="KERF604"):
            await mine.hold()
        assert 28 <= time.now - began <= 32

    await play(scene)


@pytest.mark.asyncio(loop_scope="function")
async def test_of_two_that_ask_together_one_gets_it() -> None:
    async def scene(api: LeaseApi, lease: Make, time: Time) -> None:
        both = [lease("a"), lease("b")]
        time.end_after(10)
        asked = await asyncio.gather(*(contender.acquire() for contender in both), return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in asked) == ["Over", "int"]
        (winner,) = [contender for contender in both if contender.identity == api.spec["holderIdentity"]]
        assert winner.holder == winner.identity

    await play(scene)
