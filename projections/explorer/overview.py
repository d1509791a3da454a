"""Fold everything that the explorer draws over time, in one pass over the record."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.record.entries import Entry
from kerf.projections.explorer.curves import CurvesFold
from kerf.projections.explorer.drawn import Drawn
from kerf.projections.explorer.fills import FillsFold, ShapeOf
from kerf.projections.explorer.lanes import LanesFold
from kerf.projections.explorer.marks import Mark, marks_of
from kerf.projections.explorer.troubles import TroublesFold
from kerf.projections.timeline.event import Event
from kerf.projections.timeline.grouping import group_events
from kerf.projections.timeline.timeline import Timeline


class OverviewFold:
    """Folds lanes, marks, curves and how full nodes are. Give it entries with `apply`; it can go on when more are
    written."""

    def __init__(self, timeline: Timeline, shape_of: ShapeOf, base: Iterable[Entry] = ()) -> None:
        """`timeline` knows what the record begins with, and `base` has it as entries. `shape_of` tells what a digest
        in a pod stands for."""
        self.position, self.since, self.until = 0, 0, 0
        self._timeline, self._lanes, self._curves = timeline, LanesFold(), CurvesFold()
        self._fills, self._troubles = FillsFold(shape_of), TroublesFold()
        self._marks: list[Mark] = []
        for entry in base:
            self._fold(entry)

    def apply(self, entry: Entry) -> None:
        self.position, self.until = entry.position, entry.at
        self.since = self.since or entry.at
        self._fold(entry)
        events: list[Event] = self._timeline.apply(entry)
        if events:
            events = list(group_events(events)) if len(events) > 1 else events
            self._troubles.apply(events)
            self._marks += marks_of(events, self._lanes.claims)

    def _fold(self, entry: Entry) -> None:
        self._lanes.apply(entry)
        self._curves.apply(entry)
        if type(entry.payload) in self._fills.reads:
            self._fills.apply(entry)

    def drawn(self) -> Drawn:
        """Return what there is to be drawn by now. It goes on growing with the fold."""
        return Drawn(
            position=self.position,
            since=self.since,
            until=self.until,
            lanes=list(self._lanes.lanes.values()),
            marks=self._marks,
            curves=self._curves.steps,
            fills=self._fills.fills,
            troubles=self._troubles.troubles(),
            loops=self._curves.loops(self.since, self.until),
        )
