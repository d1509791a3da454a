"""In which order new Nodes open for their pods: one at a time, those that leave other pods the least room first.

A Node that opens makes kube-scheduler try all waiting pods. Those whose own Node is closed take what room they find
elsewhere, or lose their nomination. So Nodes do not open at the same time, and one with room for others waits for those
that are still to come. No Node waits for its turn longer than a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

MAX_SECONDS_HELD_UP = 5.0
"""How long a Node waits for its turn, at most; and how long for the requests that nominate its pods."""


class _Closed(Struct):
    """A Node that waits for its turn. `spare`: how many pods of other Nodes find room beside its own."""

    spare: int
    called: asyncio.Event


class OpeningOrder:
    """`more_to_come`: whether pods wait for Nodes that are not there yet, and have rules about one another."""

    def __init__(self) -> None:
        self.more_to_come = False
        self._closed: dict[str, _Closed] = {}
        self._opening: set[str] = set()

    @asynccontextmanager
    async def turn(self, node: str, spare: int) -> AsyncIterator[None]:
        """Waits until it is this Node's turn to open. The turn is over at the end of the `async with`."""
        closed = self._closed[node] = _Closed(spare, asyncio.Event())
        self.call_next()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_SECONDS_HELD_UP):
                    await closed.called.wait()
            self._call(node)
            yield
        finally:
            self._closed.pop(node, None)
            self._opening.discard(node)
            self.call_next()

    def call_next(self) -> None:
        """Calls the Node whose turn it is, if none is opening. To be called when `more_to_come` has changed."""
        node = min(self._closed, key=lambda name: self._closed[name].spare, default="")
        if node and not self._opening and not (self._closed[node].spare and self.more_to_come):
            self._call(node)

    def _call(self, node: str) -> None:
        self._opening.add(node)
        if node in self._closed:
            self._closed.pop(node).called.set()
