"""The machine that the controller runs on: its clocks, which may be wrong, and its sleep.

Virtual time is never wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kerf.adapters.simulation.clock import Clock
from kerf.engine.record.observations import ClocksDiffer
from kerf.engine.runtime.timekeeper import Timekeeper

LOOK_EVERY = 2_000  # while the clocks may come to agree: as often as the Lease is renewed
LOOK_SELDOM = 60_000  # while nothing has changed for long
NEWS_FOR = 60_000  # after a change


class ControllerHost:
    """A machine with a wall clock and a monotonic clock, and the time that the controller's process makes of both and
    of the API server's `date` (see `Timekeeper`). All times are in ms."""

    def __init__(self, clock: Clock, date: Callable[[], int]) -> None:
        self.differ: ClocksDiffer | None = None
        """That the clocks differed when the process began."""
        self.steps = 0
        self._clock, self._date = clock, date
        self._offset = 0  # of the wall clock
        self._drift = (0, 0, 1)  # since when, by how much, within which time
        self._slept = 0
        self._sleep: tuple[int, int] | None = None  # since when, and until when
        self._changed: int | None = None  # when a clock went wrong or right last
        self._keeper = Timekeeper(*self._clocks())

    # ── what happens to it ──────────────────────────────────────────────────────────────────────────────────────

    def step(self, by: int) -> None:
        """The wall clock is set by so much."""
        self._offset += by
        self._change()

    def correct(self) -> None:
        """The wall clock is set right, and does not drift any more."""
        self._offset, self._drift = 0, (0, 0, 1)
        self._change()

    def drift(self, by: int, within: int) -> None:
        """The wall clock gains so much within so long, and is wrong by that afterwards."""
        self._offset += self._drifted()
        self._drift = self._clock.now, by, within
        self._clock.after(within, "drift ends", self._change)
        self._change()

    def suspend(self, length: int) -> None:
        """The machine does nothing for so long. Its monotonic clock stands still, its wall clock does not."""
        sleep = self._sleep = (self._clock.now, self._clock.now + length)
        self._clock.at(sleep[1], "machine wakes up", lambda: self._wake(sleep))

    def _wake(self, sleep: tuple[int, int]) -> None:
        """It wakes up, unless another machine has taken over or it was put to sleep again."""
        if self._sleep == sleep:
            self._slept += sleep[1] - sleep[0]
            self._sleep = None
            self._change()

    @property
    def wakes_at(self) -> int | None:
        """When a machine that sleeps wakes up; None for one that is awake."""
        return self._sleep[1] if self._sleep is not None else None

    def _change(self) -> None:
        self.steps += 1
        self._changed = self._clock.now

    # ── the controller's process ────────────────────────────────────────────────────────────────────────────────

    def begin(self, wrong_by: int | None = None) -> int:
        """A process begins. Returns its time. `wrong_by`: it begins on another machine, whose wall clock is wrong by so
        much."""
        if wrong_by is None and self._sleep is not None:
            wrong_by = 0
        if wrong_by is not None:
            self._offset, self._drift, self._sleep = wrong_by, (0, 0, 1), None
            self._change()
        self._keeper = Timekeeper(*self._clocks())
        self._ask()
        self.differ = self._keeper.begin(*self._clocks())
        return self.now

    def go_on_from(self, time: int) -> None:
        """The record's latest entry has this time."""
        self._keeper.go_on_from(time, self._clocks()[1])

    @property
    def now(self) -> int:
        """The time, as far as the process can tell."""
        return self._keeper.now(self._clocks()[1])

    @property
    def in_doubt(self) -> bool:
        return self._keeper.in_doubt

    def when(self, time: int) -> int:
        """When the process's time will be `time`, in virtual time."""
        return self._clock.now + time - self.now

    def look(self) -> None:
        """The process looks at its clocks, and at the API server's if they may be wrong."""
        if self._changed is None:
            return
        self._keeper.looked(*self._clocks())
        if self.in_doubt:
            self._ask()

    def next_look(self) -> int | None:
        """When it has to look again, in virtual time."""
        if self._changed is None or not (self.in_doubt or self._drifting()):
            return None
        recent = self._clock.now < self._changed + NEWS_FOR
        return self._clock.now + (LOOK_EVERY if recent or self._drifting() else LOOK_SELDOM)

    def news(self, *, doubted: int) -> list[Struct]:
        """What the record is to be told of the clocks. `doubted`: since when it says that they differ, or 0."""
        return self._keeper.news(doubted=doubted)

    def _ask(self) -> None:
        wall, monotonic = self._clocks()
        self._keeper.dated(self._date(), monotonic, monotonic, wall)

    # ── clocks ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _clocks(self) -> tuple[int, int]:
        """The readings of the wall clock and of the monotonic clock."""
        slept = self._slept + (self._clock.now - self._sleep[0] if self._sleep is not None else 0)
        return self._clock.now + self._offset + self._drifted(), self._clock.now - slept

    def _drifted(self) -> int:
        since, by, within = self._drift
        return by * min(self._clock.now - since, within) // within

    def _drifting(self) -> bool:
        since, by, within = self._drift
        return bool(by) and self._clock.now < since + within
