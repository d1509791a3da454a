"""The look at the clocks while the controller runs (ADR 9). The loop's virtual time is the true time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from typing import Any

import pytest

from kerf.adapters.controller.process_clocks import ProcessClocks
from kerf.adapters.kubernetes.errors import Unreachable
from kerf.adapters.manager.clock_watch import watch_clocks

T = 1_700_000_000_000
DAY = 86_400_000


class Machine:
    """Its wall clock is `wrong` by so much. It is the session, too: the API server answers with its Date, if it can be
    reached."""

    def __init__(self) -> None:
        self.wrong, self.reachable = 0, True
        self.asked: list[str] = []
        self.woken: list[bool] = []  # whether the clocks differed, each time that the controller was woken
        self.clocks = ProcessClocks(lambda: T + self._passed() + self.wrong, self._passed)

    def _passed(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)

    async def request(self, method: str, path: str, **_: Any) -> None:
        self.asked.append(f"{method} {path}")
        if not self.reachable:
            raise Unreachable("no answer", where=path)
        self.hears()

    def hears(self) -> None:
        self.clocks.dated(formatdate((T + self._passed()) // 1000, usegmt=True), 0.0)

    def wake(self) -> None:
        self.woken.append(self.clocks.in_doubt)


async def watched(script: Callable[[Machine], Any]) -> Machine:
    machine = Machine()
    machine.hears()
    machine.clocks.begin()
    task = asyncio.create_task(watch_clocks(machine, machine.clocks, machine.wake))  # type: ignore[arg-type]
    await script(machine)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return machine


@pytest.mark.asyncio(loop_scope="function")
async def test_the_time_is_asked_for_only_where_nothing_else_asks() -> None:
    async def script(machine: Machine) -> None:
        for _ in range(20):
            await asyncio.sleep(10)
            machine.hears()
        assert machine.asked == []
        await asyncio.sleep(40)

    machine = await watched(script)
    assert machine.asked == ["GET /version"]
    assert machine.woken == []


@pytest.mark.asyncio(loop_scope="function")
async def test_the_controller_is_woken_when_clocks_begin_and_cease_to_differ() -> None:
    async def script(machine: Machine) -> None:
        machine.wrong = DAY
        await asyncio.sleep(3)
        assert machine.woken == [True]
        await asyncio.sleep(60)
        assert machine.woken == [True]
        machine.wrong = 0
        await asyncio.sleep(7)

    machine = await watched(script)
    assert machine.woken == [True, False]
    assert len(machine.asked) > 30  # each two seconds, while they differ


@pytest.mark.asyncio(loop_scope="function")
async def test_an_api_server_that_does_not_answer_ends_nothing_and_settles_nothing() -> None:
    async def script(machine: Machine) -> None:
        machine.reachable = False
        machine.wrong = DAY
        await asyncio.sleep(10)
        machine.wrong = 0
        await asyncio.sleep(60)
        assert machine.clocks.in_doubt
        machine.reachable = True
        await asyncio.sleep(10)

    machine = await watched(script)
    assert machine.woken == [True, False]
