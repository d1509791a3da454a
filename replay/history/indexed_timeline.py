"""The events of a record that are about a few subjects, without reading the entries of all pods.

A timeline that is given everything but the entries of some pods tells the same of all else, but for the names of those
pods. So the pods that may matter are given to it, then those whose names were missing in what was chosen, until none
is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge

from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.state.indexes import Blobs
from kerf.projections.differences.documents import Shapes
from kerf.projections.timeline.event import Event
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.record_names.named_entries import NamedEntries, uid_of
from kerf.replay.record_names.postings import NAME, NODE, bare
from kerf.replay.time_travel.record_beginning import base_as_entries

Choose = Callable[[Timeline, Iterable[Entry]], Iterator[Event]]
"""Folds entries with a timeline, and gives the events that are asked for."""


class _NotingTimeline(Timeline):
    """Notes the pods that it was asked to name and does not know, by the position of the entry."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__(shapes)
        self.unknown: dict[int, set[str]] = {}
        self._unnamed: set[str] = set()

    def apply(self, entry: Entry) -> list[Event]:
        self._unnamed = set()
        events = super().apply(entry)
        if self._unnamed:
            self.unknown[entry.position] = self._unnamed
        return events

    def key_of(self, uid: str) -> str:
        key = super().key_of(uid)
        if key == uid:
            self._unnamed.add(uid)
        return key


def chosen_events(
    store: Store, named: NamedEntries, names: Iterable[str], choose: Choose, plans: Collection[int] = ()
) -> list[Event]:
    """Return the events that `choose` gives of all entries that `named` finds. `names` are those of the subjects that
    it may choose, without their kind: pods (namespace/name), nodes, claims. The decisions at `plans` it will choose."""
    base, shapes = list(base_as_entries(store)), Blobs(store.blob).shape
    uids = _pods_about(named, set(names), plans) | {uid_of(entry) for entry in base}
    while True:
        timeline, given = _NotingTimeline(shapes), set[int]()
        for entry in base:
            timeline.apply(entry)
        timeline.started = 0
        events = list(choose(timeline, _noted(merge(named.others(), named.entries(uids), key=_position), given)))
        causes = {event.cause for event in events if event.cause >= event.turn and event.cause not in given}
        needed = {uid for event in events for uid in timeline.unknown.get(event.position, ())}
        needed |= {named.uid_at(cause) for cause in causes}
        if needed <= uids:
            return events
        uids |= needed


def _pods_about(named: NamedEntries, names: set[str], plans: Collection[int]) -> set[str]:
    """Return the pods of these names, those on nodes of these names, those planned onto claims of these names, and
    those that some decisions speak of, or were brought about by."""
    uids = {""}
    for name in sorted(names):
        uids |= named.uids(NODE, name) | named.uids(NAME, bare(name))
    for entry in named.others():
        result = entry.payload.result if isinstance(entry.payload, Decision) else None
        if isinstance(result, ProvisionResult):
            places = [(claim.name, claim.pods) for claim in result.claims]
            places += [(placement.claim, placement.pods) for placement in result.placements]
            uids.update(uid for place, pods in places if place in names for uid in pods)
            if entry.position in plans:
                places += [("", group.pods) for group in (*result.unplaced, *result.ignored, *result.later)]
                uids.update(uid for _, pods in places for uid in pods)
                uids.add(named.uid_at(entry.cause))
    return uids


def _noted(entries: Iterable[Entry], given: set[int]) -> Iterator[Entry]:
    for entry in entries:
        given.add(entry.position)
        yield entry


def _position(entry: Entry) -> int:
    return entry.position
