"""What the time is, by three clocks: the wall clock, the monotonic clock, and the API server's Date header.

Time is set by the wall clock and advances by the monotonic one, so that a step of the wall clock moves nothing. A step,
or a Date that says otherwise, puts the clocks in doubt, and the record is told. They are out of doubt when two
successive Date headers agree with a wall clock that has not jumped between them; then time is set anew (ADR 9).

The clocks are read by whoever keeps a Timekeeper. All times are in ms.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.record.observations import ClocksAgree, ClocksDiffer

TOLERANCE = 2_000
"""By how much clocks may differ and still agree."""
PRECISION = 1_000
"""A Date header has whole seconds: the time is anywhere in that second."""
LONGEST_EXCHANGE = 2_000
"""Between a request and its answer. A Date that took longer says too little."""
APART = 1_000
"""Between two Date headers that count as two, at least."""


class Timekeeper:
    """Keeps the time of one process. `wall` and `monotonic` are readings at the same moment, here and below.

    Time is the wall clock's until `begin`.
    """

    def __init__(self, wall: int, monotonic: int) -> None:
        self.in_doubt = False
        self.jump = 0  # of the wall clock against the monotonic clock, since they last agreed
        self.skew: int | None = None  # by how much the wall clock is ahead of the API server's; None: it told no time
        self._anchor = wall, monotonic
        self._agreed = self._offset = wall - monotonic  # when clocks last agreed, and after the last jump
        self._server: int | None = None  # the same of the API server's clock
        self._dated = 0  # when the latest Date that counts came, by the monotonic clock
        self._same = 0  # how many Date headers in a row have said the same
        self._untold: ClocksDiffer | None = None  # what the record was not told yet
        self._moved = 0  # by how much time was set when clocks agreed, as far as the record was not told

    def now(self, monotonic: int) -> int:
        """The time (ms since the epoch)."""
        time, since = self._anchor
        return time + monotonic - since

    def looked(self, wall: int, monotonic: int) -> None:
        """Notices a jump of the wall clock against the monotonic one, and a drift that comes to as much."""
        offset = wall - monotonic
        self.jump = offset - self._agreed
        if abs(offset - self._offset) > TOLERANCE:
            self._offset, self._same = offset, 0
            self._doubt()

    def dated(self, date: int, sent: int, received: int, wall: int) -> None:
        """A Date header. `sent` and `received` say when, by the monotonic clock; `wall` is the wall clock's reading
        when it was received."""
        self.looked(wall, received)
        if received - sent > LONGEST_EXCHANGE or (self._server is not None and received - self._dated < APART):
            return
        ahead = wall - received
        agreed = self.skew is not None and abs(self.skew) <= TOLERANCE
        self.skew = _outside(sent + ahead - date, received + ahead - date)
        self._server, self._dated = date + PRECISION // 2 - received, received
        if self._untold is not None:
            self._untold = self._differ()
        agrees = abs(self.skew) <= TOLERANCE
        self._same = self._same + 1 if agrees == agreed else 1
        if self._same < 2 or agrees != self.in_doubt:
            return
        if agrees:
            self._agree(wall, received)
        else:
            self._doubt()

    def begin(self, wall: int, monotonic: int) -> ClocksDiffer | None:
        """The process takes office: time is set by the wall clock, unless a Date header says otherwise. Returns that
        the clocks differ then."""
        self.looked(wall, monotonic)
        self.in_doubt = self.in_doubt or (self.skew is not None and abs(self.skew) > TOLERANCE)
        self._same, self._untold, self._moved = 0, None, 0
        if not self.in_doubt:
            self._set(wall, monotonic)
            return None
        if self._server is not None:  # objects have the API server's times
            self._anchor = monotonic + self._server, monotonic
        return self._differ()

    def go_on_from(self, time: int, monotonic: int) -> None:
        """Clocks in doubt set no time: a record goes on from its latest entry (see Runtime)."""
        if self.in_doubt:
            self._anchor = time, monotonic

    def news(self, *, doubted: int) -> list[Struct]:
        """What the record is to be told with the next turn. `doubted`: since when it says that the clocks differ, 0 if
        it does not. What it has measured from then on was measured too early by what time was set forward."""
        if self.in_doubt and not doubted:
            self._doubt()
        news: list[Struct] = [self._untold] if self._untold is not None else []
        agree = ClocksAgree(self._moved, doubted if self._moved > 0 else 0)
        if not self.in_doubt and (doubted or news):
            news.append(agree)
        elif self.in_doubt and doubted and self._moved:  # they agreed for a moment
            news.insert(0, agree)
        self._untold, self._moved = None, 0
        return news

    def _doubt(self) -> None:
        self.in_doubt = True
        self._untold = self._differ()

    def _differ(self) -> ClocksDiffer:
        return ClocksDiffer(self.jump, self.skew or 0)

    def _agree(self, wall: int, monotonic: int) -> None:
        self._moved += wall - self.now(monotonic)
        self.in_doubt = False
        self._set(wall, monotonic)

    def _set(self, wall: int, monotonic: int) -> None:
        self._anchor = wall, monotonic
        self._agreed = self._offset = wall - monotonic
        self.jump = 0


def _outside(earliest: int, latest: int) -> int:
    """By how much the wall clock is ahead at least: `earliest` and `latest` are its bounds less the Date."""
    if earliest > PRECISION:
        return earliest - PRECISION
    return min(0, latest)
