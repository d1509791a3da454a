"""When new Nodes open for their pods: all that wait at the same moment, once the pods of all of them have been told.

A Node that opens makes kube-scheduler try all waiting pods. Those whose own Node is closed take what room they find
elsewhere, or lose their nomination. So Nodes open together: then each pod finds its own Node open. Their requests take
some milliseconds, in which kube-scheduler comes to the first pods; so the Nodes of these go first. A Node that has
joined is about to ask for its turn, so the others wait a moment for it. While more Nodes are to come, one with room for
their pods waits. No Node waits for its turn longer than a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Set
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

MAX_SECONDS_HELD_UP = 5.0
"""How long a Node waits for its turn, at most; how long for the requests that nominate its pods; and how long for the
Nodes that open with it."""
SECONDS_EXPECTED = 2.0
"""How long the others wait for a Node that has joined and does not ask for its turn."""


QueuePlace = tuple[int, ...]
"""Where a pod is in kube-scheduler's queue; the lowest comes first."""


class _Group(Struct):
    """Nodes that open together, in this order. `preparing`: those whose pods are not told yet."""

    nodes: list[_Closed]
    preparing: set[str]

    def mark_prepared(self, node: str) -> None:
        self.preparing.discard(node)
        for closed in () if self.preparing else self.nodes:
            asyncio.get_running_loop().call_soon(closed.opens.set)  # so that each of them waits until it is told


class _Closed(Struct):
    """A Node that waits for its turn. `spare`: how many pods of other Nodes find room beside its own. `first_pod`: the
    place in the queue of the first of its own."""

    spare: int
    first_pod: QueuePlace
    called: asyncio.Event
    opens: asyncio.Event
    group: _Group | None = None


class NodeOpenings:
    """`more_to_come`: whether pods wait for Nodes that are not there yet, and have rules about one another."""

    def __init__(self) -> None:
        self.more_to_come = False
        self._closed: dict[str, _Closed] = {}
        self._opening: set[str] = set()
        self._expected: dict[str, float] = {}  # Nodes that have joined → until when the others wait for them

    def expect(self, joined: Set[str]) -> None:
        """These Nodes have joined, and will ask for their turn. Call `call_next` afterwards."""
        loop = asyncio.get_running_loop()
        if joined - self._expected.keys():
            loop.call_later(SECONDS_EXPECTED, self.call_next)
        until = loop.time() + SECONDS_EXPECTED
        self._expected = {node: self._expected.get(node, until) for node in joined}

    @asynccontextmanager
    async def turn(self, node: str, spare: int, first_pod: QueuePlace = ()) -> AsyncIterator[None]:
        """Waits until it is this Node's turn to open. In the `async with` its pods are told it; at the end it waits
        for the Nodes that open together with this one. Those whose first pod comes first go on first."""
        closed = self._closed[node] = _Closed(spare, first_pod, asyncio.Event(), asyncio.Event())
        self._expected[node] = 0.0  # it has asked
        self.call_next()
        try:
            await _within_limit(closed.called)
            if closed.group is None:
                self._call(self._closed)
            yield
            if closed.group is not None:
                closed.group.mark_prepared(node)
                await _within_limit(closed.opens)
        finally:
            self._closed.pop(node, None)
            self._opening.discard(node)
            if closed.group is not None:
                closed.group.mark_prepared(node)
            self.call_next()

    def call_next(self) -> None:
        """Calls the Nodes whose turn it is, if none is opening and none is about to ask for its turn. To be called when
        `more_to_come` has changed."""
        if not self._opening and not self._is_another_about_to_ask:
            self._call(name for name, closed in self._closed.items() if not (closed.spare and self.more_to_come))

    @property
    def _is_another_about_to_ask(self) -> bool:
        now = asyncio.get_running_loop().time()
        return any(until > now for until in self._expected.values())

    def _call(self, nodes: Iterable[str]) -> None:
        names = sorted(nodes, key=lambda name: (self._closed[name].first_pod, name))
        group = _Group([self._closed.pop(name) for name in names], set(names))
        self._opening |= group.preparing
        for closed in group.nodes:
            closed.group = group
            closed.called.set()


async def _within_limit(event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(MAX_SECONDS_HELD_UP):
            await event.wait()
