"""A number that changes over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from msgspec import Struct, field


class Steps(Struct):
    """From each of `times` (ms since the epoch) on, the number is the one of `values` there; before it is 0."""

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, at: int, change: float) -> None:
        self.become(at, (self.values[-1] if self.values else 0) + change)

    def become(self, at: int, value: float) -> None:
        if self.times and self.times[-1] == at:
            self.values[-1] = value
        else:
            self.times.append(at)
            self.values.append(value)

    def at(self, time: int) -> float:
        after = bisect_right(self.times, time)
        return self.values[after - 1] if after else 0

    def peak(self, since: int, until: int) -> int:
        """Return the last time, from `since` to `until`, at which the number becomes its highest; `since` if it is the
        highest there."""
        begin, end = bisect_right(self.times, since), bisect_right(self.times, until)
        return max([(self.at(since), since), *zip(self.values[begin:end], self.times[begin:end], strict=True)])[1]

    def most(self, since: int, until: int) -> float:
        """Return the highest value after `since`, and up to `until`."""
        begin, end = bisect_right(self.times, since), bisect_right(self.times, until)
        return max([self.at(since), *self.values[begin:end]])

    def changes(self, since: int, until: int, apart: int) -> list[int]:
        """Return the value at `since` and those after it, each behind its time, as whole numbers. Of the changes
        within `apart` ms the last one counts."""
        told: list[int] = []
        begin, end = bisect_right(self.times, since), bisect_right(self.times, until)
        index = max(0, begin - 1)
        while index < end:
            at = max(since, self.times[index])
            after = bisect_left(self.times, (at // apart + 1) * apart, index + 1, end)
            told += (at, round(self.values[after - 1]))
            index = after
        return told
