"""What the controller asks the cloud about instances, and what of the answers is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kerf.adapters.controller.inbox import Inbox
from kerf.adapters.controller.instance_polling import InstancePolling
from kerf.engine.errors import KerfError
from kerf.engine.record.observations import InstanceSeen, TaggedInstance


class Questions:
    """A runtime that watches `going`, and has a question about the reservation of `doubted`."""

    def __init__(self) -> None:
        self.going, self.doubted = ["i-going"], ["i-reserved"]

    def watched_instances(self) -> list[str]:
        return self.going

    def instances_in_question(self) -> list[str]:
        return self.doubted


class Reserved:
    """All instances run, on reservations."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        self.asked.append(instances)
        return [InstanceSeen(name, "running", capacity_type="reserved") for name in instances]


@pytest.mark.asyncio(loop_scope="function")
async def test_a338_what_an_instance_runs_as_is_told_where_it_was_in_question() -> None:
    """And each time that it is: the last answer may be of a time before."""
    runtime: Any = Questions()
    cloud: Any = Reserved()
    inbox = Inbox()
    polling = InstancePolling(runtime, cloud, inbox)
    polling.saw([])
    with ThreadPoolExecutor(1) as pool:
        running = asyncio.create_task(polling.run(pool))
        told = []
        for doubted in (["i-reserved"], [], ["i-reserved"]):
            runtime.doubted = doubted
            polling.saw([])
            await asyncio.sleep(4)
            told.append([(o.payload.instance, o.payload.capacity_type) for o in inbox.take()])  # type: ignore[attr-defined]
        running.cancel()
    assert told == [[("i-going", ""), ("i-reserved", "reserved")], [], [("i-reserved", "reserved")]]
    assert cloud.asked[0] == ["i-going", "i-reserved"]


@pytest.mark.asyncio(loop_scope="function")
async def test_a365_instances_are_listed_every_ten_seconds_at_first_and_then_every_two_minutes() -> None:
    """What a process that died has started, its cloud may show late. A listing that failed counts as none."""
    loop, listed = asyncio.get_running_loop(), list[float]()
    start = loop.time()

    class Lists:
        def listing(self) -> list[TaggedInstance]:
            listed.append(round(loop.time() - start))
            if len(listed) == 3:
                raise KerfError("throttled")
            return []

    runtime: Any = Questions()
    cloud: Any = Lists()
    with ThreadPoolExecutor(1) as pool:
        running = asyncio.create_task(InstancePolling(runtime, cloud, Inbox()).list(pool))
        await asyncio.sleep(500)
        running.cancel()
    assert listed == [*range(10, 220, 10), 330, 450]
