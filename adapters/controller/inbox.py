"""What has arrived and is not recorded yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kerf.engine.record.observations import Observation


class Inbox:
    """Filled on the loop, by watches, answers and timers; emptied by the controller, one turn at a time."""

    def __init__(self) -> None:
        self._arrived: list[Observation] = []
        self.put_in = 0
        self.taken_out = 0
        """How many observations, ever."""
        self._news = asyncio.Event()

    def put(self, observations: Iterable[Observation]) -> None:
        before = len(self._arrived)
        self._arrived.extend(observations)
        self.put_in += len(self._arrived) - before
        if self._arrived:
            self._news.set()

    def take(self) -> list[Observation]:
        """All of it, in the order of arrival."""
        taken, self._arrived = self._arrived, []
        self.taken_out += len(taken)
        self._news.clear()
        return taken

    def wake(self) -> None:
        """Have a waiting `wait` return although nothing arrived."""
        self._news.set()

    async def wait(self, seconds: float | None) -> bool:
        """Until something is there, at most for `seconds`; whether something is."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True
