"""Tell the story of one pod, workload, node, claim, NodePool, NodeClass or PodDisruptionBudget: what happened to it,
what brought that about, and what came of it, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.state.indexes import Blobs
from kerf.projections.timeline.event import Event
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.errors import PartialRecord, SubjectUnknown
from kerf.replay.history.histories import Histories
from kerf.replay.history.indexed_timeline import chosen_events, told_of
from kerf.replay.history.replacement_chain import ChainLink
from kerf.replay.history.selections import BudgetSelection, Selection, budget_selection, selection_of
from kerf.replay.history.subjects import BUDGET, POD, POOL, Subject, subject_at
from kerf.replay.partial_records import imported_from
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.subject_names import kind_of
from kerf.replay.time_travel.record_beginning import base_as_entries

_EVICTION_EVENTS = ("claim-pod-evicted", "claim-pod-forced")
_POD_END_EVENTS = ("pod-terminating", "pod-ended", "pod-gone")


class Story(Struct, frozen=True):
    """The story of one `subject` (written as in `Event`).

    `others` are the subjects that belong to it: a claim's node and instance, a pod's claims. An event's `cause` is the
    position of the event that brought it about. `chain` holds the nodes that replaced one another, for the story of a
    node.
    """

    subject: str
    others: tuple[str, ...]
    events: tuple[Event, ...]
    chain: tuple[ChainLink, ...] = ()


def story(store: Store, name: str, until: int | None = None, named: NamedEntries | None = None) -> Story:
    """Tell the story of anything that has a name (see `subjects.subject_of`), up to a position. `named` finds the
    entries up to there, if the record has an index. Raises SubjectUnknown (KERF203) and SubjectAmbiguous (KERF210)."""
    try:
        histories, found = subject_at(store, name, until, named)
    except (SubjectUnknown, PartialRecord):
        said = _story_of_what_was_said(store, name, until)
        if said is None:
            raise
        return said
    subject = str(found)
    selection: Selection | BudgetSelection
    if found.kind == BUDGET:
        selection, named = _of_budget(store, histories, found, named)
    else:
        selection = selection_of(histories, found)
    told: Iterable[Event]
    if named is None:
        told = _selected_events(selection, timeline_from_base(store), store.scan(0, until))
    else:
        names = {name.partition("/")[2] for name in (*selection.subjects, *selection.causes)}
        choose, about = partial(_selected_events, selection), selection.all_subjects()
        told = chosen_events(store, named, names, choose, selection.plans, about)
    events = tuple(_causes_first(told))
    others = sorted((selection.subjects | selection.helpers.keys()) - {subject})
    return Story(subject, tuple(others), events, selection.chain if len(selection.chain) > 1 else ())


def _story_of_what_was_said(store: Store, name: str, until: int | None) -> Story | None:
    """The story of a pod or NodePool that an imported record only speaks of, since a log has no such objects; None if
    nothing is said of it."""
    if imported_from(store) is None:
        return None
    kind, _, rest = name.partition("/")
    known = kind_of(kind) if rest else ""
    meant = (f"{known}/{rest}",) if known else (f"{POD}/{name}", f"{POOL}/{name}")
    about: dict[str, list[Event]] = {subject: [] for subject in meant}
    timeline = timeline_from_base(store)
    for entry in store.scan(0, until):
        for event in timeline.apply(entry):
            for subject in about.keys() & {event.subject, *event.related}:
                about[subject].append(event)
    return next((Story(subject, (), tuple(events)) for subject, events in about.items() if events), None)


def _of_budget(
    store: Store, histories: Histories, found: Subject, named: NamedEntries | None
) -> tuple[BudgetSelection, NamedEntries | None]:
    """Return what the story of a PodDisruptionBudget tells, and what finds its entries: reasons name it, which no index
    does. So it is looked for in what is told, or else in all entries."""
    selection = budget_selection(histories, found, Blobs(store.blob).shape)
    told = told_of(store, named) if named is not None else None
    return (selection, None) if told is None else (selection.within(told), named)


def _selected_events(
    selection: Selection | BudgetSelection, timeline: Timeline, entries: Iterable[Entry]
) -> Iterator[Event]:
    """Give the events of the story, and those of the same turn that brought them about, without repetitions."""
    turn, earlier = 0, dict[int, list[Event]]()
    for entry in entries:
        if entry.turn != turn:
            turn, earlier = entry.turn, {}
        events = [event for event in timeline.apply(entry) if event.params.get("times", 1) == 1]
        chosen = [event for event in events if event in selection]
        for event in chosen[:1]:
            yield from earlier.pop(event.cause, [])
        yield from chosen
        if events and not chosen:
            earlier[entry.position] = events


def timeline_from_base(store: Store) -> Timeline:
    """Make a timeline that knows what the record begins with, before the first entry."""
    blobs = Blobs(store.blob)
    timeline = Timeline(blobs.shape, blobs.node_class)
    for entry in base_as_entries(store):
        timeline.apply(entry)
    timeline.started = 0
    return timeline


def _causes_first(events: Iterable[Event]) -> Iterator[Event]:
    """Put evictions before the end of their pod. Within a turn the watch may show the end before the answer comes
    in."""
    for _, turn in groupby(events, key=lambda event: event.turn):
        events_of_turn = list(turn)
        evicted = {f"pod/{event.params['pod']}" for event in events_of_turn if event.code in _EVICTION_EVENTS}
        yield from sorted(events_of_turn, key=lambda event: event.code in _POD_END_EVENTS and event.subject in evicted)
