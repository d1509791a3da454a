"""The loop of async tests: time passes without waiting, but for what runs in other threads."""

from __future__ import annotations

import asyncio
import time

import pytest

HOUR = 3_600.0


@pytest.mark.asyncio(loop_scope="function")
async def test_an_hour_takes_no_time_and_timers_keep_their_order() -> None:
    began, loop = time.monotonic(), asyncio.get_running_loop()
    rung: list[float] = []
    for delay in (HOUR, 1.0, 60.0):
        loop.call_later(delay, rung.append, delay)
    start = loop.time()
    await asyncio.sleep(2 * HOUR)
    assert rung == [1.0, 60.0, HOUR]
    assert loop.time() - start == pytest.approx(2 * HOUR)
    assert time.monotonic() - began < 60


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_in_another_thread_is_waited_for_whatever_timers_there_are() -> None:
    done: list[bool] = []

    def work() -> None:
        time.sleep(0.05)
        done.append(True)

    async with asyncio.timeout(HOUR):
        await asyncio.to_thread(work)
    assert done


@pytest.mark.asyncio(loop_scope="function")
async def test_a_timeout_ends_what_never_ends() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(HOUR):
            await asyncio.Event().wait()


@pytest.mark.real_time
@pytest.mark.asyncio(loop_scope="function")
async def test_real_time_is_real() -> None:
    assert abs(asyncio.get_running_loop().time() - time.monotonic()) < 60
