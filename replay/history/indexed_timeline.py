"""The events of a record that are about a few subjects, without reading the entries of all pods.

A timeline that is given everything but the entries of some pods tells the same of all else, but for the names of those
pods. So the pods that may matter are given to it, then those that were missing in what was chosen, until none is. A
plan names all pods that it found a place for: of these one entry each is read, for the name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import chain

from msgspec.structs import replace

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.state.indexes import Blobs
from kerf.projections.timeline.event import Event
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.history.histories_until import with_histories
from kerf.replay.history.told_events import PLACED, ToldEvents, is_of_pod, is_plan, told_events
from kerf.replay.record_names.named_entries import NamedEntries, uid_of
from kerf.replay.record_names.postings import NAME, NODE, bare
from kerf.replay.time_travel.record_beginning import BASE_TURN, base_as_entries

_PLAN_MADE, _POD = "plan-made", "pod/"
FEW_PLANS = 8
"""The names of the pods of so many plans are kept for the next story of the same; of more, they would crowd out what
else is kept."""
Choose = Callable[[Timeline, Iterable[Entry]], Iterator[Event]]
"""Folds entries with a timeline, and gives the events that are asked for."""


class _NotingTimeline(Timeline):
    """Notes the pods that it was asked to name and does not know, by the position of the entry."""

    def __init__(self, blobs: Blobs) -> None:
        super().__init__(blobs.shape, blobs.node_class)
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


class _PodsTimeline(_NotingTimeline):
    """Tells of pods and plans; of anything else what is told of it already."""

    def __init__(self, blobs: Blobs, told: ToldEvents) -> None:
        super().__init__(blobs)
        self._told, self._latest = told, 0

    def apply(self, entry: Entry) -> list[Event]:
        payload = entry.payload
        if entry.turn == BASE_TURN:
            return super().apply(entry)
        if is_plan(entry):
            self._latest = self._latest if payload.result.repeats else entry.position
            return super().apply(entry)
        if is_of_pod(entry):
            plan = bisect_left(self._told.planned, entry.position)
            if plan and self._told.planned[plan - 1] > self._latest:
                self._targets = {}  # a plan that does not speak of the pod
            return super().apply(entry)
        if isinstance(payload, PLACED):
            self._claim(payload)
        elif isinstance(payload, CapacityBuffer):
            self._buffers[payload.uid] = payload
        return self._told.of(entry.position)


class _Every:
    """Gives all entries that are of no pod. They are decoded once, if they are not too many."""

    def __init__(self, named: NamedEntries) -> None:
        self._named = named
        self._others = list(named.others()) if named.keeps else None

    def timeline(self, blobs: Blobs) -> _NotingTimeline:
        return _NotingTimeline(blobs)

    def entries(self, uids: Collection[str]) -> Iterable[Entry]:
        return self._named.others() if self._others is None else self._others

    def plans(self) -> Iterable[Entry]:
        return self.entries(())

    def misses(self, positions: Iterable[int]) -> bool:
        return False


class _Found:
    """Gives those entries that are of no pod which tell of some subjects, stand at some positions, or say something of
    some pods."""

    def __init__(self, named: NamedEntries, told: ToldEvents, subjects: Iterable[str], plans: Iterable[int]) -> None:
        self._told, self._until = told, named.until
        self._wanted = {*told.positions(subjects), *plans}
        events = [event for position in self._wanted for event in told.of(position)]
        self._wanted.update(event.cause for event in events if event.cause >= event.turn)

    def timeline(self, blobs: Blobs) -> _NotingTimeline:
        return _PodsTimeline(blobs, self._told)

    def entries(self, uids: Collection[str]) -> Iterable[Entry]:
        told, wanted = self._told, {*self._wanted, *(entry.position for entry in self._told.buffers)}
        for plan in {plan for uid in uids for plan in told.of_pod.get(uid, ())}:
            wanted.add(told.plans[plan].position)
            for name in places_of(told.plans[plan], uids):
                wanted.update(entry.position for entry in told.places.get(name, ()))
        return self._at(sorted(wanted))

    def plans(self) -> Iterable[Entry]:
        return chain(self._told.plans, self._told.repeats)

    def _at(self, positions: Sequence[int]) -> Iterator[Entry]:
        for position in positions:
            entry = self._told.entry(position) if position <= self._until else None
            if entry is not None:
                yield entry

    def misses(self, positions: Iterable[int]) -> bool:
        """Return whether some of these entries were not given yet. The next time they are."""
        missing = {entry.position for entry in self._at(sorted(positions))} - self._wanted
        self._wanted |= missing
        return bool(missing)


def chosen_events(
    store: Store,
    named: NamedEntries,
    names: Iterable[str],
    choose: Choose,
    plans: Collection[int] = (),
    subjects: Collection[str] | None = None,
    pods: Collection[str] = (),
) -> list[Event]:
    """Return the events that `choose` gives of all entries that `named` finds. `names` are those of the subjects that
    it may choose, without their kind: pods (namespace/name), nodes, claims; `pods` are further pods, by uid. The
    decisions at `plans` it will choose.

    Where `subjects` are given, it chooses events of these alone, or at `plans`, or pods' own, and what brought them
    about. Then what is about others is not read."""
    base, blobs = list(base_as_entries(store)), Blobs(store.blob)
    told = told_of(store, named) if subjects is not None else None
    given_too: _Every | _Found = _Every(named) if told is None else _Found(named, told, subjects or (), plans)
    uids = _pods_about(named, set(names), plans, given_too.plans()) | {uid_of(entry) for entry in base} | set(pods)
    read_of, of_pods = set[str](), list[Entry]()
    while True:
        timeline, given = given_too.timeline(blobs), set[int]()
        for entry in base:
            timeline.apply(entry)
        timeline.started = 0
        if read_of != uids:
            of_pods = list(merge(of_pods, named.entries(uids - read_of), key=_position))
            read_of = set(uids)
        entries = merge(given_too.entries(uids), of_pods, key=_position)
        events = list(choose(timeline, _noted(entries, given)))
        causes = {event.cause for event in events if event.cause >= event.turn and event.cause not in given}
        needed = {uid for event in events if event.code != _PLAN_MADE for uid in _unnamed(event, timeline)}
        needed |= {named.uid_at(cause) for cause in causes}
        if not given_too.misses(causes) and needed <= uids:
            few = sum(event.code == _PLAN_MADE for event in events) <= FEW_PLANS
            return [_with_names(event, timeline, named, keep=few) for event in events]
        uids |= needed


def _unnamed(event: Event, timeline: _NotingTimeline) -> set[str]:
    """Return the pods of an event that the timeline does not know."""
    unknown = timeline.unknown.get(event.position)
    return {uid for name in event.related if (uid := name.removeprefix(_POD)) in unknown} if unknown else set()


def _with_names(event: Event, timeline: _NotingTimeline, named: NamedEntries, *, keep: bool) -> Event:
    """Return the event with the names of the pods that were there at its time. With `keep` those of a plan are kept."""
    unnamed = _unnamed(event, timeline)
    if not unnamed:
        return event
    find = partial(named.keys_at, unnamed, event.position)
    kept = keep and event.code == _PLAN_MADE
    keys = named.kept(("names", event.position, frozenset(unnamed)), find) if kept else find()
    names = {_POD + uid: _POD + key for uid, key in keys.items()}
    return replace(event, related=tuple(names.get(name, name) for name in event.related))


def told_of(store: Store, named: NamedEntries) -> ToldEvents | None:
    """Return what is told of the whole record; None where that cannot be kept. Its histories are folded with it."""
    whole = named.whole
    if not whole.keeps or named.until < named.after:
        return None

    def work() -> ToldEvents | None:
        blobs = Blobs(store.blob)
        timeline = Timeline(blobs.shape, blobs.node_class)
        for entry in base_as_entries(store):
            timeline.apply(entry)
        return told_events(timeline, with_histories(store, whole))

    return whole.folded("told", work)


def places_of(plan: Entry, uids: Collection[str]) -> Iterator[str]:
    """Give the claims that a plan means for some pods."""
    result, wanted = plan.payload.result, set(uids)
    for claim in result.claims:
        if not wanted.isdisjoint(claim.pods):
            yield claim.name
    for placement in result.placements:
        if not wanted.isdisjoint(placement.pods):
            yield placement.claim


def _pods_about(named: NamedEntries, names: set[str], plans: Collection[int], decided: Iterable[Entry]) -> set[str]:
    """Return the pods of these names, those on nodes of these names, those planned onto claims of these names, and
    those that some decisions leave without a place, or were brought about by. All plans are among `decided`."""
    uids = {""}
    for name in sorted(names):
        uids |= named.uids(NODE, name) | named.uids(NAME, bare(name))
    for entry in decided:
        result = entry.payload.result if isinstance(entry.payload, Decision) else None
        if isinstance(result, ProvisionResult) and entry.position <= named.until:
            places = [(claim.name, claim.pods) for claim in result.claims]
            places += [(placement.claim, placement.pods) for placement in result.placements]
            uids.update(uid for place, pods in places if place in names for uid in pods)
            if entry.position in plans:
                uids.update(uid for group in (*result.unplaced, *result.ignored, *result.later) for uid in group.pods)
                uids.add(named.uid_at(entry.cause))
    return uids


def _noted(entries: Iterable[Entry], given: set[int]) -> Iterator[Entry]:
    for entry in entries:
        given.add(entry.position)
        yield entry


def _position(entry: Entry) -> int:
    return entry.position
