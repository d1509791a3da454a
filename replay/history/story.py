"""Tell the story of one pod, workload, node, claim or NodePool: what happened to it, what brought that about, and what
came of it, in order."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.state.indexes import Blobs
from kerf.projections.timeline.event import Event
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.history.histories import ClaimHistory, Histories
from kerf.replay.history.indexed_timeline import chosen_events
from kerf.replay.history.pod_histories import PodHistory
from kerf.replay.history.replacement_chain import ChainLink, replacement_chain
from kerf.replay.history.subjects import POD, POOL, WORKLOAD, Subject, subject_at
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.time_travel.record_beginning import base_as_entries

_LAUNCH_EVENTS = frozenset(
    [
        "claim-requested", "launch-refused", "offering-refused", "launch-adopted", "claim-launched",
        "claim-launch-failed", "claim-launch-timed-out", "claim-registered", "claim-initialized",
    ]
)  # fmt: skip
_REMOVAL_EVENTS = frozenset(
    [
        "claim-condemned", "claim-tainted", "claim-reason-raised", "claim-drain-started", "claim-instance-vanished",
        "deletion-asked", "deletion-seen", "controller-decided", "controller-gave-up", "interruption-announced",
    ]
)  # fmt: skip

_END_EVENTS = frozenset(["claim-drained", "claim-terminated", "claim-untainted"])
_POOL_EVENTS = frozenset(
    [
        "claim-requested", "launch-refused", "offering-refused", "claim-launch-failed", "claim-launch-timed-out",
        "claim-tainted", "claim-instance-vanished", "claim-terminated",
    ]
)  # fmt: skip
_MOVE_EVENTS = ("move-started", "move-abandoned")

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


class _Selection(Struct, frozen=True):
    """Which events belong to a story.

    All events of `subjects` do. Of each of `helpers`, only the codes given, each up to a position. `plans` are
    positions of decisions. `causes` are pods that wait, until the position of the plan that they brought about. Of the
    nodes of `chain`, their moves belong to it.
    """

    subjects: frozenset[str]
    helpers: dict[str, dict[str, int]]
    plans: frozenset[int]
    causes: dict[str, int]
    chain: tuple[ChainLink, ...] = ()

    def all_subjects(self) -> set[str]:
        """Return whatever an event may be about that belongs to the story, but for its plans."""
        chain = (f"nodeclaim/{link.claim}" for link in self.chain)
        return {*self.subjects, *self.helpers, *self.causes, *chain}

    def __contains__(self, event: Event) -> bool:
        if event.subject in self.subjects or self.subjects.intersection(event.related):
            return event.code != "plan-made" or event.position in self.plans
        if event.code in _MOVE_EVENTS and any(f"nodeclaim/{link.claim}" in event.related for link in self.chain):
            return True
        if event.subject in self.helpers:
            return event.position < self.helpers[event.subject].get(event.code, 0)
        if event.subject in self.causes:
            return event.code == "pod-waiting" and event.position < self.causes[event.subject]
        return event.position in self.plans


def story(store: Store, name: str, until: int | None = None, named: NamedEntries | None = None) -> Story:
    """Tell the story of anything that has a name (see `subjects.subject_of`), up to a position. `named` finds the
    entries up to there, if the record has an index. Raises SubjectUnknown (KERF203) and SubjectAmbiguous (KERF210)."""
    histories, found = subject_at(store, name, until, named)
    subject, selection = str(found), _selection(histories, found)
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


def _selected_events(selection: _Selection, timeline: Timeline, entries: Iterable[Entry]) -> Iterator[Event]:
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
    timeline = Timeline(Blobs(store.blob).shape)
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


def _selection(histories: Histories, found: Subject) -> _Selection:
    subject = str(found)
    if found.kind == POD:
        return _pod_selection(histories, [histories.pods[uid] for uid in histories.pods.uids_of(found.name)])
    if found.kind == WORKLOAD:
        return _pod_selection(histories, histories.pods.of_workload(found.name))
    if found.kind == POOL:
        return _pool_selection(histories, found)
    claims = [c for c in histories.claims.values() if subject in _subjects_of(c)]
    if not claims:
        return _Selection(frozenset([subject]), {}, frozenset(), {})
    subjects = frozenset(name for claim in claims for name in _subjects_of(claim))
    causes = {f"pod/{pod}": claim.decision for claim in claims for pod in histories.pod_names(claim.pods)}
    chain = replacement_chain(histories, [claim.name for claim in claims])
    helpers: dict[str, dict[str, int]] = {}
    for link in chain:
        for helper in _subjects_of(histories.claims[link.claim]):
            if helper not in subjects:
                helpers[helper] = dict.fromkeys(_LAUNCH_EVENTS | _REMOVAL_EVENTS | _END_EVENTS, sys.maxsize)
    return _Selection(subjects, helpers, frozenset(claim.decision for claim in claims if claim.decision), causes, chain)


def _pool_selection(histories: Histories, pool: Subject) -> _Selection:
    """Select what happened to a NodePool, and when its nodes came and went."""
    claims = [claim for claim in histories.claims.values() if claim.node_pool == pool.name]
    coming_and_going = dict.fromkeys(_POOL_EVENTS, sys.maxsize)
    helpers = {f"nodeclaim/{claim.name}": coming_and_going for claim in claims}
    return _Selection(frozenset([str(pool)]), helpers, frozenset(), {})


def _subjects_of(claim: ClaimHistory) -> list[str]:
    kinds = (("nodeclaim", claim.name), ("node", claim.node), ("instance", claim.instance))
    return [f"{kind}/{name}" for kind, name in kinds if name]


def _pod_selection(histories: Histories, pods: list[PodHistory]) -> _Selection:
    helpers: dict[str, dict[str, int]] = {}
    for pod in pods:
        planned = [histories.claims[decision.place] for decision in pod.decisions if decision.place in histories.claims]
        for helper in (name for claim in planned for name in _subjects_of(claim)):
            helpers.setdefault(helper, {}).update(dict.fromkeys(_LAUNCH_EVENTS, sys.maxsize))
        for claim_name in histories.claims_of_node.get(pod.node, []):
            for helper in _subjects_of(histories.claims[claim_name]):
                helpers.setdefault(helper, {}).update(dict.fromkeys(_REMOVAL_EVENTS, pod.gone or sys.maxsize))
    plans = frozenset(decision.position for pod in pods for decision in pod.decisions)
    return _Selection(frozenset(f"pod/{pod.key}" for pod in pods), helpers, plans, {})
