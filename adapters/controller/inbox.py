"""What has arrived and is not recorded yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kerf.engine.model.kubernetes.nodes import Node
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
        """What is for one turn, in the order of arrival: all, up to where a Node is ready again. A turn decides on
        the state that it leaves: nobody would have judged that the Node was ill (D-134)."""
        end = _recovery(self._arrived)
        taken, self._arrived = self._arrived[:end], self._arrived[end:]
        self.taken_out += len(taken)
        if not self._arrived:
            self._news.clear()
        return taken

    def take_all(self) -> list[Observation]:
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


def _recovery(arrived: list[Observation]) -> int:
    """Where a Node is ready that was not earlier in the list; the list's end if there is none. One that never said
    whether it is ready was not ill: it has just joined."""
    ill: set[str] = set()
    for number, observation in enumerate(arrived):
        node = observation.payload
        if not isinstance(node, Node):
            continue
        if node.ready and node.name in ill:
            return number
        if not node.ready and node.ready_since:
            ill.add(node.name)
    return len(arrived)
