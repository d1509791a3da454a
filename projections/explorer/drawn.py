"""What the explorer draws of a record: lanes, marks, curves. It is cut into tiles, so that a page asks for the part
that it shows, no finer than it can show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from kerf.engine.nodeclaim.state_table import TERMINATED
from kerf.projections.explorer.curves import Curves, CurveSteps
from kerf.projections.explorer.lanes import Lane, Span
from kerf.projections.explorer.marks import Mark
from kerf.projections.explorer.steps import Steps
from kerf.projections.explorer.troubles import Trouble
from kerf.projections.figures.loops import Loop

VERSION = 4
"""To be raised when the same record is drawn otherwise: what was kept of it is then not used."""
CELLS, FILL_CELLS = 1024, 256
"""A tile of a coarse level tells one state of a lane, one mark of a kind, in each of so many parts of its time; and how
full a node is in each of so many."""
MOST_OF_A_TILE = 10_000
"""A level is the finest one when its tiles have about so many spans and marks: it leaves out nothing."""
_SHORTEST, _LONGEST = 10, 50  # powers of 2: a second, and more than a record lasts


class Tile(Struct, frozen=True, kw_only=True):
    """A part of the picture: tile `number` of a `level` reaches from number × 2^level ms on for 2^level ms.

    The spans of a lane begin with the state that it has as the tile begins. A tile that is not of the finest level
    leaves out what lasts less than `apart` ms, and tells of marks of one kind that are less apart as of one; `more`
    counts the others.
    """

    level: int
    number: int
    apart: int
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]


class Fill(Struct, frozen=True, kw_only=True):
    """How full each Node is within a tile: `nodes` maps its name to times (ms since the tile's begin), each with the
    percentage that pods ask for from then on, the larger one of CPU and memory."""

    level: int
    number: int
    nodes: dict[str, list[int]]


class Drawn(Struct, kw_only=True):
    """The picture of a record from `since` to `until` (ms since the epoch), as of the entry at `position`. `fills` is
    the percentage of each Node that is asked for."""

    position: int = 0
    since: int = 0
    until: int = 0
    lanes: list[Lane] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    curves: CurveSteps = field(default_factory=CurveSteps)
    fills: dict[str, Steps] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)

    def levels(self) -> tuple[int, int]:
        """Return the finest and the coarsest level. On the coarsest two tiles have the whole record."""
        coarsest = min(max((self.until - self.since).bit_length(), _SHORTEST), _LONGEST)
        items = sum(len(lane.spans) for lane in self.lanes) + len(self.marks)
        return max(_SHORTEST, coarsest - (items // MOST_OF_A_TILE).bit_length()), coarsest

    def tile(self, level: int, number: int) -> Tile:
        """Return a tile, of the finest or the coarsest level if it is beyond these."""
        level, is_finest = self._level(level)
        begin, end = number << level, (number + 1) << level
        apart = 1 if is_finest else (1 << level) // CELLS
        lanes = (lane for lane in self.lanes if lane.start < end and (not lane.end or lane.end >= begin))
        marks = (mark for mark in self.marks if begin <= mark.at < end)
        return Tile(
            level=level,
            number=number,
            apart=apart,
            lanes=tuple(replace(lane, spans=_spans(lane, begin, end, apart)) for lane in lanes),
            marks=tuple(_together(marks, apart) if apart > 1 else marks),
        )

    def fill(self, level: int, number: int) -> Fill:
        """Return how full Nodes are within a tile, of the finest or the coarsest level if it is beyond these."""
        level, _ = self._level(level)
        begin, end = number << level, (number + 1) << level
        apart = max(1, (1 << level) // FILL_CELLS)
        found = ((node, steps.changes(begin, end - 1, apart)) for node, steps in self.fills.items())
        nodes = {
            node: [value - begin if index % 2 == 0 else value for index, value in enumerate(told)]
            for node, told in found
            if told
        }
        return Fill(level=level, number=number, nodes=nodes)

    def curves_of(self, since: int, until: int, points: int) -> Curves:
        """Return the curves of a part of the record; 0 stands for its begin, and for its end."""
        return self.curves.curves(since or self.since, until or self.until, points)

    def _level(self, level: int) -> tuple[int, bool]:
        """Return the nearest level that there is, and whether it is the finest one."""
        finest, coarsest = self.levels()
        level = min(max(level, finest), coarsest)
        return level, level == finest


def _spans(lane: Lane, begin: int, end: int, apart: int) -> list[Span]:
    """Return the spans of a lane within two times, the one that lasts at the beginning first. Of those that begin
    within `apart` ms the last one counts."""
    told: list[Span] = []
    for span in lane.spans:
        if span.at >= end:
            break
        short = apart > 1 and told and span.at // apart == told[-1].at // apart and span.state != TERMINATED
        if told and (span.at < begin or short):
            told[-1] = span
        else:
            told.append(span)
    return told


def _together(marks: Iterable[Mark], apart: int) -> Iterator[Mark]:
    """Give marks so that those of one kind on the same lanes within `apart` ms are one."""

    def likeness(mark: Mark) -> tuple[str, tuple[str, ...], int]:
        return mark.kind, mark.claims, mark.at // apart

    for _, alike in groupby(sorted(marks, key=lambda mark: (*likeness(mark), mark.position)), key=likeness):
        first, *others = alike
        yield replace(first, more=len(others))
