"""Find what brought a decision about, and what came of it: the events before and after it that belong to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.decisions import (
    Decision,
    DeletePod,
    DisruptResult,
    EvictPod,
    LifecycleResult,
    Move,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    Result,
    StaticResult,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.projections.timeline.event import DEBUG, Event
from kerf.projections.timeline.grouping import group_events
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.history.histories import Histories
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.indexed_timeline import chosen_events
from kerf.replay.history.story import timeline_from_base
from kerf.replay.record_names.named_entries import NamedEntries

LOOKED_AFTER = 20_000
"""So many entries after the decision may tell what came of it."""
MOST_EVENTS = 40
"""At most so many events are told on either side."""

_LED_TO = frozenset(
    [
        "interruption-announced", "deletion-asked", "deletion-seen", "controller-decided", "claim-drifted",
        "claim-drifted-fields", "claim-condemned", "claim-tainted", "claim-drain-started", "claim-instance-vanished",
    ]
)  # fmt: skip
"""What makes a claim go, and so brings decisions about it."""
_NOT_TOLD = frozenset(["claim-kept", "claim-noted", "claim-pod-evicted", "claim-pod-forced", "claim-volumes-detached"])
_TOLD = ("claim-", "launch-", "offering-", "move-", "interruption-")
_BOUND = ("pod-bound", "pod-bound-elsewhere")


class Consequence(Struct, frozen=True):
    """An event that came of a decision. `after` is the position of what it follows: the decision, or an event here."""

    event: Event
    after: int


class DecisionLinks(Struct, frozen=True):
    """What belongs to a decision, in order: `causes` before it, `consequences` after it. `more`: not all is told."""

    causes: tuple[Event, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    more: bool = False


class _About(Struct):
    """What a decision is about: claims that it orders or takes away, pods by uid, and earlier entries by position.
    `nodes` are the nodes on which its pods were last."""

    claims: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    entries: set[int] = field(default_factory=set)
    nodes: dict[str, str] = field(default_factory=dict)

    def claim_of(self, event: Event) -> str:
        """Return the first claim of the decision that an event concerns, as a subject; "" for none."""
        return next((name for name in _claims(event) if name.removeprefix("nodeclaim/") in self.claims), "")

    def is_of_pod(self, entry: Entry) -> bool:
        return isinstance(entry.payload, Pod) and entry.payload.uid in self.pods


def decision_links(store: Store, position: int, named: NamedEntries | None = None) -> DecisionLinks:
    """Return what belongs to the decision at a position. Where `named` reaches as far as is looked, only what may
    belong to it is read."""
    about, until = _about(store, position), min(position + LOOKED_AFTER, store.last_position())
    events: Iterable[Event]
    if named is None or named.whole.until < until:
        events = _linked_events(about, position, timeline_from_base(store), store.scan(0, until))
    else:
        events = _found_events(store, about, position, named.whole.up_to(until))
    earlier, later = list[Event](), list[Event]()
    for event in events:
        (earlier if event.position < position else later).append(event)
    causes = list(group_events(earlier))
    consequences = list(_linked(group_events(later), about, position))
    more = len(causes) > MOST_EVENTS or len(consequences) > MOST_EVENTS
    return DecisionLinks(tuple(causes[-MOST_EVENTS:]), tuple(consequences[:MOST_EVENTS]), more)


def _found_events(store: Store, about: _About, position: int, named: NamedEntries) -> list[Event]:
    """Return the events that belong to a decision, of entries that are found by their names."""
    pods = about.pods | ({named.uid_at(cause) for cause in about.entries} - {""})
    known = histories_of(store, position, named.up_to(position))
    claims = {*about.claims, *(name for pod in pods for name in _claims_under(pod, known))}
    subjects = [f"nodeclaim/{name}" for name in claims]
    choose = partial(_linked_events, about, position)
    return chosen_events(store, named, (), choose, about.entries, subjects, pods)


def _claims_under(uid: str, known: Histories) -> list[str]:
    """Return the claims of the node that a pod was on."""
    pod = known.pods.get(uid)
    return known.claims_of_node.get(pod.node, []) if pod is not None else []


def _linked_events(about: _About, position: int, timeline: Timeline, entries: Iterable[Entry]) -> Iterator[Event]:
    """Fold entries, and give the events that brought the decision about, then those that came of it."""
    about = replace(about, pods=set(about.pods), nodes={})
    earlier, later = _Earlier(about), list[Event]()
    for entry in entries:
        events = timeline.apply(entry)
        if entry.position < position:
            earlier.add(events, entry)
        elif entry.position > position:
            later += _consequences(events, entry, about)
        if len(later) > MOST_EVENTS * 10:
            break
    yield from earlier.causes()
    yield from later


class _Earlier:
    """Collects what may have brought a decision about: the latest event of each code for each subject."""

    def __init__(self, about: _About) -> None:
        self._about = about
        self._events: dict[tuple[str, str], Event] = {}
        self._going: dict[tuple[str, str], Event] = {}  # claims that go, whichever they are
        self._claim_of_node: dict[str, str] = {}

    def add(self, events: Iterable[Event], entry: Entry) -> None:
        of_pod = self._about.is_of_pod(entry)
        if of_pod and entry.payload.node:
            self._about.nodes[entry.payload.uid] = entry.payload.node
        for event in events:
            if event.code == "claim-registered":
                self._claim_of_node[str(event.params["node"])] = event.subject
            if (event.code == "pod-waiting" and of_pod) or event.position in self._about.entries:
                self._events[event.subject, event.code] = event
            elif event.code in _LED_TO:
                self._going.update(((claim, event.code), event) for claim in _claims(event))

    def causes(self) -> list[Event]:
        """Return the events of the decision's own claims and pods, and what made the nodes go that its pods were on."""
        own = {f"nodeclaim/{name}" for name in self._about.claims}
        own |= {self._claim_of_node.get(node, "") for node in self._about.nodes.values()}
        found = {**self._events, **{key: event for key, event in self._going.items() if key[0] in own}}
        unique = {(event.position, event.subject, event.code): event for event in found.values()}
        return [event for _, event in sorted(unique.items())]


def _claims(event: Event) -> Iterator[str]:
    return (name for name in (event.subject, *event.related) if name.startswith("nodeclaim/"))


def _consequences(events: Iterable[Event], entry: Entry, about: _About) -> Iterator[Event]:
    for event in events:
        if event.code in _BOUND:
            if about.is_of_pod(entry):
                about.pods.discard(entry.payload.uid)  # where it goes later is another story
                yield event
        elif _is_told(event) and about.claim_of(event):
            yield event


def _is_told(event: Event) -> bool:
    return event.level != DEBUG and event.code.startswith(_TOLD) and event.code not in _NOT_TOLD


def _linked(events: Iterable[Event], about: _About, position: int) -> Iterator[Consequence]:
    """Say of each event what it follows: the event before it of the same claim, or of the pod's node."""
    latest: dict[str, int] = {}
    for event in events:
        followed = about.claim_of(event) or next((name for name in event.related if name in latest), "")
        yield Consequence(event, latest.get(followed, position))
        if event.code not in _BOUND:
            latest[followed] = event.position
            if "node" in event.params:
                latest[f"node/{event.params['node']}"] = event.position


def _about(store: Store, position: int) -> _About:
    """Read what a decision is about from its result and its intents."""
    entry = next(store.scan(position - 1, position))
    decision: Decision = entry.payload
    about = _About(entries={entry.cause} if entry.cause else set())
    _add_result(about, decision.result)
    for intent in decision.intents:
        if isinstance(intent, EvictPod | DeletePod):
            about.pods.add(intent.uid)
        about.claims.add(intent.claim)
    about.claims.discard("")
    return about


def _add_result(about: _About, result: Result) -> None:
    if isinstance(result, ProvisionResult):
        for claim in result.claims:
            about.pods.update(claim.pods)
        for placement in result.placements:
            about.pods.update(placement.pods)
        for group in (*result.unplaced, *result.ignored, *result.later):
            about.pods.update(group.pods)
        about.claims.update(claim.name for claim in result.claims)
    elif isinstance(result, DisruptResult):
        about.claims.update(verdict.claim for verdict in result.verdicts if verdict.action == "remove")
    elif isinstance(result, ProposedMovesResult):
        for move in result.proposed:
            _add_move(about, move)
    elif isinstance(result, MoveStepResult):
        about.entries.add(int(result.move.partition(".")[0] or 0))
        if result.begun is not None:
            _add_move(about, result.begun)
    elif isinstance(result, LifecycleResult):
        about.claims.add(result.claim)
    elif isinstance(result, StaticResult):
        about.claims.update(claim.name for claim in result.claims)
        about.claims.update(result.removed)


def _add_move(about: _About, move: Move) -> None:
    about.claims.update(move.claims)
    about.claims.update(claim.name for claim in move.replacements)
    about.pods.update(uid for placement in move.placements for uid in placement.pods)
