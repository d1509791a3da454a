"""Add measures up by a dimension: by NodePool, workload, type, zone, hour or reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import fsum

from msgspec import Struct

HOUR_MS = 3_600_000
HOUR = "hour"
UNKNOWN = "-"
"""The group of what a dimension says nothing about."""


class Measure(Struct, frozen=True):
    """Amounts at a time (ms since the epoch), with what they are about: dimension → group."""

    at: int
    about: dict[str, str]
    amounts: dict[str, float]


class Row(Struct, frozen=True):
    """The sums of one group, and when its first and last measure were (ms since the epoch). An hour's group is its
    beginning as RFC 3339."""

    group: str
    amounts: dict[str, float]
    first: int
    last: int


class Table(Struct, frozen=True):
    """Rows by one dimension (`by`), and the sums of all. The rows of a dimension are disjoint: they add up to it."""

    by: str
    rows: tuple[Row, ...]
    total: dict[str, float]


def table(measures: Iterable[Measure], by: str, names: Iterable[str]) -> Table:
    """Add up the amounts of these names. Hours come in their order, other groups by their first amount, the largest
    first."""
    named = tuple(names)
    groups: dict[str, list[Measure]] = {}
    everything: list[Measure] = []
    for measure in measures:
        everything.append(measure)
        groups.setdefault(_group(measure, by), []).append(measure)
    rows = [_row(group, found, named) for group, found in groups.items()]
    if by == HOUR:
        rows.sort(key=lambda row: row.group)
    else:
        rows.sort(key=lambda row: (-row.amounts[named[0]], row.group))
    return Table(by, tuple(rows), _sums(everything, named))


def _row(group: str, found: list[Measure], names: tuple[str, ...]) -> Row:
    times = [measure.at for measure in found]
    return Row(group, _sums(found, names), min(times), max(times))


def within(measures: Iterable[Measure], since: int, until: int) -> list[Measure]:
    """Return the measures between two times (ms since the epoch), both included."""
    return [measure for measure in measures if since <= measure.at <= until]


def in_common(about: Iterable[Mapping[str, str]], dimensions: Iterable[str]) -> dict[str, str]:
    """Return the dimensions in which all are of one group, with that group. Nothing of a single one, which has
    everything in common with itself."""
    found = list(about)
    if len(found) < 2:
        return {}
    groups = {name: {each.get(name, "") for each in found} for name in dimensions}
    return {name: next(iter(of)) for name, of in groups.items() if len(of) == 1 and of != {""}}


def _group(measure: Measure, by: str) -> str:
    return hour_of(measure.at) if by == HOUR else measure.about.get(by, "") or UNKNOWN


def _sums(measures: list[Measure], names: tuple[str, ...]) -> dict[str, float]:
    return {name: _sum([measure.amounts.get(name, 0) for measure in measures]) for name in names}


def _sum(amounts: list[float]) -> float:
    """Add up amounts; counts stay whole numbers."""
    return fsum(amounts) if any(isinstance(amount, float) for amount in amounts) else sum(amounts)


def hour_of(at: int) -> str:
    """Return the beginning of the hour of the clock in which a time lies."""
    return f"{datetime.fromtimestamp(at // HOUR_MS * HOUR_MS / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
