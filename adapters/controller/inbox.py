"""Observations that have arrived and are not recorded yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.observations import Observation


class Inbox:
    """Filled on the event loop by watches, answers and timers; emptied by the controller, one turn at a time."""

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
        """The observations of one turn, in the order of arrival: all of them, up to where a Node becomes ready again. A
        turn decides on the state that it leaves: without the stop nobody would have seen that the Node was unready
        (D-134)."""
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
        """Let a waiting `wait` return although nothing arrived."""
        self._news.set()

    async def wait(self, seconds: float | None) -> bool:
        """Wait until something is there, for at most `seconds`; returns whether something is."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


def _recovery(arrived: list[Observation]) -> int:
    """The index at which a Node is ready that was unready earlier in the list; the list's length if there is none. A
    Node that has never been ready does not count: it has just joined."""
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
