"""What the API answers about the whole time of a record: how long it is, its picture in tiles, its curves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from msgspec import Struct

from kerf.adapters.web.reader import RecordReader
from kerf.projections.explorer.curves import Curves
from kerf.projections.explorer.drawn import Fill, Tile
from kerf.projections.explorer.marks import DECISION

MOST_POINTS = 2_000


class TimelineAnswer(Struct, frozen=True, kw_only=True):
    """How much of the record's time is drawn, `since` to `until` in ms since the epoch, and the levels of its tiles.

    `read` is the share of the entries that are read, from 0 to 1. Below 1, pods that wait, evictions and how full nodes
    are do not count yet. `fault` says why a damaged record ends early.
    """

    position: int
    since: int
    until: int
    finest: int
    coarsest: int
    read: float
    fault: str = ""


class StepAnswer(Struct, frozen=True):
    """A decision; zeros if there is none in this direction."""

    at: int = 0
    position: int = 0
    text: str = ""


def timeline(reader: RecordReader) -> TimelineAnswer:
    """How long the record is, in which tiles its picture comes, and how much of it is read."""
    drawn = reader.picture.now()
    finest, coarsest = drawn.levels()
    return TimelineAnswer(
        position=drawn.position, since=drawn.since, until=drawn.until, finest=finest, coarsest=coarsest,
        read=round(reader.picture.read, 2), fault=reader.picture.fault,
    )  # fmt: skip


def tile(reader: RecordReader, level: int, number: int) -> Tile:
    """Lanes of NodeClaims and marks on them: tile `number` of a level, from number × 2^level ms on for 2^level ms."""
    return reader.picture.now().tile(level, number)


def fill(reader: RecordReader, level: int, number: int) -> Fill:
    """How full each Node is over the time of a tile."""
    return reader.picture.now().fill(level, number)


def curves(reader: RecordReader, since: int = 0, until: int = 0, points: int = 400) -> Curves:
    """What nodes cost per hour, how many there are, pods that wait, evictions, from `since` to `until` (ms since the
    epoch)."""
    return reader.picture.now().curves_of(since, until, max(2, min(points, MOST_POINTS)))


def step(reader: RecordReader, at: int, by: str = "next") -> StepAnswer:
    """The decision after a time (ms since the epoch), or the one before it: `by` is next or previous."""
    decisions = [mark for mark in reader.picture.now().marks if mark.kind == DECISION]
    if by == "next":
        index = bisect_right(decisions, at, key=lambda mark: mark.at)
    else:
        index = bisect_left(decisions, at, key=lambda mark: mark.at) - 1
    found = decisions[index] if 0 <= index < len(decisions) else None
    return StepAnswer() if found is None else StepAnswer(found.at, found.position, found.text)


PLAIN = frozenset((timeline, tile, fill, curves))
"""Their answers have times as numbers alone: there are too many of them. They are known again by what is in them: what
is past stays the same, however much is written after it."""
