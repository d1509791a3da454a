"""The form of a metric before it is served: a family of samples by label values."""

from __future__ import annotations

from bisect import bisect_left

from msgspec import Struct

COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"

DURATIONS: tuple[float, ...] = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    120.0, 150.0, 300.0, 450.0, 600.0,
)  # fmt: skip
"""Bounds of buckets for durations, in seconds (D in L-362)."""
CLIENT_DEFAULTS: tuple[float, ...] = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of buckets that Prometheus's client takes where none are named (P in L-362)."""
_HOUR, _DAY = 3600.0, 86_400.0
LIFETIMES: tuple[float, ...] = (
    900.0, 1800.0, 2700.0, *(h * _HOUR for h in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(d * _DAY for d in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)  # fmt: skip
"""Bounds of buckets for lifetimes of nodes, in seconds (L-375)."""
SCORES: tuple[float, ...] = (0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Bounds of buckets for scores of moves (M-11)."""


def doubling(count: int) -> tuple[float, ...]:
    """Return the bounds 1, 2, 4, … seconds."""
    return tuple(2.0**power for power in range(count))


class Distribution(Struct):
    """Values counted by bucket. The last count is of the values above all bounds."""

    bounds: tuple[float, ...]
    counts: list[int]
    sum: float = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Map each bound to the number of values that are not above it."""
        counts, so_far = [], 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            so_far += count
            counts.append((bound, so_far))
        return counts


class Family(Struct):
    """One metric.

    `samples` maps label values, in the order of `labels`, to the value of a counter or gauge. `distributions` does so
    for a histogram, or for a summary, which has no buckets.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    samples: dict[tuple[str, ...], float] = {}
    distributions: dict[tuple[str, ...], Distribution] = {}

    def inc(self, *values: str, by: float = 1) -> None:
        self.samples[values] = self.samples.get(values, 0.0) + by

    def set(self, value: float, *values: str) -> None:
        self.samples[values] = value

    def observe(self, value: float, *values: str) -> None:
        distribution = self.distributions.get(values)
        if distribution is None:
            distribution = self.distributions[values] = Distribution(self.bounds, [0] * (len(self.bounds) + 1))
        distribution.add(value)
