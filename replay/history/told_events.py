"""What the entries that are of no pod tell, worked out once for a record and found by what it is about.

A timeline says the same of them whichever pods it is given, but for plans, which name pods. So their events are kept,
packed, and plans are told again for each question, as far as they speak of its pods.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.timeline.event import Event
from kerf.projections.timeline.timeline import Timeline

PLACED = (
    ev.Registered, ev.Adopted, ev.Terminated, ev.InstanceVanished, ev.LaunchFailed, ev.LaunchTimedOut, ev.Cancelled,
)  # fmt: skip
"""Events after which a claim has a Node, or has none any more."""
KEPT = (*PLACED, CapacityBuffer)
_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[Event]).decode


class ToldEvents(Struct):
    """The events of all entries that are of no pod and no plan, by position. `plans` are the entries of plans, in
    order, but for those that repeat another, which are `repeats`; `planned` are their positions, and `of_pod` says
    which of them speak of a pod. `places` are the entries by which a claim has a Node or none, `buffers` those that
    give pods names. `kept` are all of these entries, by position."""

    plans: list[Entry] = field(default_factory=list)
    planned: list[int] = field(default_factory=list)
    repeats: list[Entry] = field(default_factory=list)
    of_pod: dict[str, list[int]] = field(default_factory=dict)
    places: dict[str, list[Entry]] = field(default_factory=dict)
    buffers: list[Entry] = field(default_factory=list)
    kept: dict[int, Entry] = field(default_factory=dict)
    packed: dict[int, bytes] = field(default_factory=dict)
    odd: dict[int, list[Event]] = field(default_factory=dict)
    about: dict[str, array[int]] = field(default_factory=dict)

    def every(self) -> Iterator[int]:
        """Give the positions at which something is told, and not by a plan."""
        yield from self.packed
        yield from self.odd

    def of(self, position: int) -> list[Event]:
        """Return the events of an entry."""
        packed = self.packed.get(position)
        return _decode(packed) if packed is not None else self.odd.get(position, [])

    def entry(self, position: int) -> Entry | None:
        """Return the entry at a position, if something is told of it. Of one whose events are known its payload is left
        out."""
        kept = self.kept.get(position)
        events = self.of(position) if kept is None else []
        return _without_payload(events[0]) if events else kept

    def positions(self, subjects: Iterable[str]) -> Iterator[int]:
        """Give the positions at which something is told about subjects, and not by a plan."""
        for subject in subjects:
            yield from self.about.get(subject, ())


def told_events(timeline: Timeline, entries: Iterable[Entry]) -> ToldEvents | None:
    """Return what entries that are of no pod tell; None if one of them is of a pod. `timeline` knows what the record
    begins with."""
    told = ToldEvents()
    for entry in entries:
        payload, events = entry.payload, timeline.apply(entry)
        if is_of_pod(entry):
            return None
        if is_plan(entry):
            _note_plan(told, entry)
            continue
        if isinstance(payload, PLACED):
            told.places.setdefault(payload.claim, []).append(entry)
        elif isinstance(payload, CapacityBuffer):
            told.buffers.append(entry)
        if isinstance(payload, KEPT):
            told.kept[entry.position] = entry
        if events:
            _note(told, entry.position, events)
    return told


def is_of_pod(entry: Entry) -> bool:
    payload = entry.payload
    return isinstance(payload, Pod) or (isinstance(payload, ObjectGone) and payload.kind == "pod")


def is_plan(entry: Entry) -> bool:
    """Return whether an entry is a decision about pods that wait."""
    return isinstance(entry.payload, Decision) and isinstance(entry.payload.result, ProvisionResult)


def _note_plan(told: ToldEvents, entry: Entry) -> None:
    result = entry.payload.result
    told.kept[entry.position] = entry
    if result.repeats:
        told.repeats.append(entry)
        return
    told.plans.append(entry)
    told.planned.append(entry.position)
    groups = (*result.claims, *result.placements, *result.unplaced, *result.ignored, *result.later)
    for uid in {uid for group in groups for uid in group.pods}:
        told.of_pod.setdefault(uid, []).append(len(told.plans) - 1)


def _without_payload(event: Event) -> Entry:
    return Entry(event.position, event.turn, "", 0, "", 0, event.at, event.cause, 0, None)


def _note(told: ToldEvents, position: int, events: list[Event]) -> None:
    packed = _packed(events)
    if packed is not None:
        told.packed[position] = packed
    else:
        told.odd[position] = events
    for subject in {name for event in events for name in (event.subject, *event.related)}:
        told.about.setdefault(subject, array("Q")).append(position)


def _packed(events: list[Event]) -> bytes | None:
    """Return events as bytes; None for what they would not be read as again."""
    try:
        packed = _encode(events)
        return packed if _decode(packed) == events else None
    except (TypeError, msgspec.MsgspecError):
        return None
