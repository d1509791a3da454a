"""The clocks of this process, and what the API server says of the time: see kerf.engine.runtime.timekeeper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from msgspec import Struct

from kerf.engine.record.observations import ClocksDiffer
from kerf.engine.runtime.timekeeper import Timekeeper


def wall_clock() -> int:
    """The time by the wall clock (ms since the epoch). It may be wrong; `ProcessClocks.now` is what to go by."""
    return time.time_ns() // 1_000_000


def monotonic_clock() -> int:
    return time.monotonic_ns() // 1_000_000


class ProcessClocks:
    """May be asked by any thread."""

    def __init__(self, wall: Callable[[], int] = wall_clock, monotonic: Callable[[], int] = monotonic_clock) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._lock = threading.Lock()
        self._keeper = Timekeeper(wall(), monotonic())
        self.heard = 0  # when a Date header came last, by the monotonic clock; 0 for never

    def now(self) -> int:
        """The time (ms since the epoch)."""
        with self._lock:
            return self._keeper.now(self._monotonic())

    @property
    def in_doubt(self) -> bool:
        return self._keeper.in_doubt

    @property
    def jump(self) -> int:
        """By how much the wall clock has moved against the monotonic clock since the clocks last agreed (ms)."""
        return self._keeper.jump

    @property
    def skew(self) -> int | None:
        """By how much the wall clock is ahead of the API server's (ms); None if it told no time."""
        return self._keeper.skew

    def dated(self, date: str, took: float) -> None:
        """An answer came with this Date header (empty if it had none), `took` seconds after the request."""
        try:
            said = round(parsedate_to_datetime(date).timestamp() * 1000)
        except ValueError:
            return
        with self._lock:
            received, wall = self._monotonic(), self._wall()
            self._keeper.dated(said, received - round(took * 1000), received, wall)
            self.heard = received

    def begin(self) -> ClocksDiffer | None:
        """The process takes office. Returns that its clocks differ, if they do."""
        with self._lock:
            return self._keeper.begin(self._wall(), self._monotonic())

    def go_on_from(self, at: int) -> None:
        """The record's latest entry has this time: what goes on from there while the clocks differ."""
        with self._lock:
            self._keeper.go_on_from(at, self._monotonic())

    def look(self) -> None:
        """See whether the wall clock has jumped."""
        with self._lock:
            self._keeper.looked(self._wall(), self._monotonic())

    def silent_for(self) -> int:
        """How long no Date header has come (ms)."""
        return self._monotonic() - self.heard

    def news(self, *, doubted: int) -> list[Struct]:
        """What the record is to be told of the clocks. `doubted`: since when it says that they differ, or 0."""
        with self._lock:
            self._keeper.looked(self._wall(), self._monotonic())
            return self._keeper.news(doubted=doubted)
