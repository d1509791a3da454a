"""Virtual time: a clock that stands still until it is told to advance, with the actions that are due on it.

Actions run in the order of (time, sequence of scheduling). This is a total order, so a run depends on nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

from kerf.adapters.simulation.errors import EndlessLoopError

MAX_ACTIONS_PER_INSTANT = 1_000_000
"""How many actions one instant may hold before the clock says that it cannot get past it."""


class Clock:
    """A clock in milliseconds since the epoch. With a `pace`, `advance` also sleeps: `pace` wall seconds for each
    virtual second."""

    def __init__(self, start: int, *, pace: float = 0.0, sleep: Callable[[float], None] | None = None) -> None:
        self.now = start
        self._due: list[tuple[int, int, str, Callable[[], None]]] = []
        self._sequence = 0
        self._pace = pace
        self._sleep = sleep

    def at(self, when: int, what: str, action: Callable[[], None]) -> None:
        """Run `action` at the time `when`, or now if that is past. `what` names it in errors."""
        self._sequence += 1
        heappush(self._due, (max(when, self.now), self._sequence, what, action))

    def after(self, delay: int, what: str, action: Callable[[], None]) -> None:
        """Run `action` in `delay` milliseconds. A delay of 0 means at this instant, behind all that is due by now."""
        self.at(self.now + delay, what, action)

    def next_due(self) -> int | None:
        return self._due[0][0] if self._due else None

    def advance(self, until: int) -> None:
        """Run all that is due up to and including `until`, each at its own time, and then set the time to `until`.
        Raises `EndlessLoopError` (KERF801) when one instant never ends."""
        instant: Counter[str] = Counter()
        count = 0
        while self._due and self._due[0][0] <= until:
            when, _, what, action = heappop(self._due)
            if when > self.now:
                self._move(when)
                instant.clear()
                count = 0
            instant[what] += 1
            count += 1
            if count > MAX_ACTIONS_PER_INSTANT:
                raise _endless_loop_error(self.now, instant)
            action()
        self._move(until)

    def _move(self, to: int) -> None:
        if to > self.now:
            if self._pace and self._sleep is not None:
                self._sleep((to - self.now) / 1000 * self._pace)
            self.now = to


def _endless_loop_error(now: int, instant: Counter[str]) -> EndlessLoopError:
    hint = "Two controllers undo each other's work, or one reacts to itself"
    return EndlessLoopError(f"time {now} does not end: {most_frequent(instant)}", hint=hint)


def most_frequent(counts: Counter[str]) -> str:
    """Name the three most frequent actions, for an error that says what kept going."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{what} ({count} times)" for what, count in ranked[:3])
