"""Go on from a recorded moment to the next decision, with or without a change.

The engine gets the changes as observations, then the recorded ones, at their times, until a decision does something:
it launches, places, moves or removes. Up to there nothing has been done that was not done in the record, so that the
recorded observations are those that the engine would have had. What comes after it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    Intent,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
)
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.observations import (
    CatalogueSeen,
    EffectAnswered,
    InstanceSeen,
    LaunchAnswered,
    ObjectGone,
    Observation,
    SettingsSeen,
)
from kerf.engine.record.store import Store
from kerf.engine.runtime.react import next_due, react
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state.load import load
from kerf.engine.state.moves import STARTED
from kerf.engine.state.state import State
from kerf.replay.errors import DecidedByNewer
from kerf.replay.partial_records import require
from kerf.replay.verify.decide_again import VERSIONS, is_observed, settle, versions_differ
from kerf.replay.what_if.changes import Applied, Change

HORIZON = 3_600_000
"""So long (ms) after the moment a decision is waited for."""
ALIKE_WITHIN = 15_000
"""Decisions at most this far apart (ms) are the same one: a change makes a provisioning window close later."""
FOLLOWING = 60_000
"""So long (ms) after the next decision `following_pass` waits for one."""
_LONGEST = 18
"""Digits of a position."""
_ANSWERS = (LaunchAnswered, EffectAnswered, InstanceSeen)
_KIND_OF: dict[type[Struct], WatchedKind] = {kind.struct: kind for kind in WATCHED}


class LeftOut(Struct, frozen=True):
    """What the record has of a changed object after the moment, and this course has not: the entry at `position`, of
    the time `at`, makes it another (`kind`, `name`)."""

    kind: str
    name: str
    position: int
    at: int


class Course(Struct, frozen=True):
    """What came of a moment. `before` is the state at the moment, changes included; `after` that of the turn with the
    next decision, which was made at `at`. `entries` are those of this turn; there are none if nothing was decided up
    to `at`. `stays` is the latest that passes on the way said of claims that stay. `older` names deciders that the
    record has in an older version. `left_out` are the first changes of changed objects that were passed over."""

    applied: tuple[Applied, ...]
    before: State
    after: State
    at: int
    entries: tuple[Entry, ...] = ()
    stays: dict[str, Reason] = {}
    older: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def decisions(self) -> list[Entry]:
        """Those of the turn that do something, in order."""
        return [entry for entry in self.entries if does_something(entry.payload)]


def turn_of(store: Store, position: int, *, again: bool) -> int:
    """Return the end of the turn of `position`. With `again`, that of the turn before it if a decision stands there, so
    that the decision is made again."""
    first = next(store.scan(position - 1, position), None)
    if first is None:
        return position
    if again and isinstance(first.payload, Decision):
        return first.turn - 1
    for entry in store.scan(position):
        if entry.turn != first.turn:
            break
        position = entry.position
    return position


def next_decision(store: Store, position: int, changes: Sequence[Change] = (), *, now: int = 0) -> Course:
    """Go on from the end of the turn at `position`, with these changes made at `now` (the time of that turn by
    default): for HORIZON at most, and for ALIKE_WITHIN after a recorded decision that is not made again.

    Raises ChangeRefused (KERF208) for a change that does not apply, RecordShortened (KERF118) for a moment before the
    record's base, DecidedByNewer (KERF209), PartialRecord (KERF211) for a record that was imported without NodePools,
    and what the engine raises.
    """
    state = _at(store, position)
    require(state.facts.imported, Missing.POLICY, "what kerf would decide")
    before, applied = changed_state(store, position, changes, now=now)
    recorded = _Recorded(store, position)
    observations = [observation for found in applied for observation in found.observations]
    recorded.leave_out(observations, state)
    at = max(now, state.facts.at)
    entries: tuple[Entry, ...] = ()
    until = at + HORIZON
    stays: dict[str, Reason] = {}

    def course(at: int, entries: tuple[Entry, ...] = ()) -> Course:
        return Course(tuple(applied), before, state, at, entries, stays, recorded.older, recorded.left_out)

    if observations:
        entries = _turn(state, at, observations)
        recorded.done(entries)
    while not any(does_something(entry.payload) for entry in entries):
        stays |= _reasons_to_stay(entries)
        due, following = next_due(state), recorded.next_at()
        if not due and following is None:
            return course(until)
        timer = max(due, at + 1) if due else until + 1
        in_record = following is not None and following <= timer
        following_at = following if following is not None and in_record else timer
        if following_at > until:
            return course(until)
        at = following_at
        entries = _turn(state, at, recorded.take() if in_record else ())
        recorded.done(entries)
        if recorded.acted:
            until = min(until, recorded.acted + ALIKE_WITHIN)
    stays |= _reasons_to_stay(entries)
    return course(at, entries)


def _reasons_to_stay(entries: Iterable[Entry]) -> dict[str, Reason]:
    results = (entry.payload.result for entry in entries if isinstance(entry.payload, Decision))
    verdicts = (verdict for result in results for verdict in getattr(result, "verdicts", ()))
    return {verdict.claim: verdict.reason for verdict in verdicts if verdict.action == "keep"}


def changed_state(
    store: Store, position: int, changes: Sequence[Change], *, now: int = 0
) -> tuple[State, list[Applied]]:
    """Return the state at `position` with these changes made, before anything is decided. Raises as `next_decision`
    does."""
    state = _at(store, position)
    applied: list[Applied] = []
    for change in changes:
        found = change(state)
        applied.append(found)
        draft = TurnDraft(state, max(now, state.facts.at))
        for observation in found.observations:
            draft.add(observation.payload, blobs=observation.blobs)
    return state, applied


def following_pass(course: Course) -> Course | None:
    """Go on to the provisioning pass that follows, as if nothing else happened; None if none does something soon.

    Changes `course.after`. What it returns is a guess: answers of the cloud and of the cluster are missing.
    """
    state, at = course.after, course.at
    while True:
        due = next_due(state)
        at = max(due, at + 1)
        if not due or at > course.at + FOLLOWING:
            return None
        entries = _turn(state, at, ())
        decisions = (entry.payload for entry in entries if does_something(entry.payload))
        if any(isinstance(decision.result, ProvisionResult) for decision in decisions):
            return Course((), state, state, at, entries)


def _at(store: Store, position: int) -> State:
    state = load(store, position)
    settle(state)
    return state


def _turn(state: State, at: int, observations: Iterable[Observation]) -> tuple[Entry, ...]:
    draft = TurnDraft(state, at)
    for observation in observations:
        draft.add(observation.payload, blobs=observation.blobs)
    react(draft)
    return tuple(draft.entries)


def does_something(payload: Any) -> bool:
    """Whether an entry is a decision that changes what runs, or that proposes to."""
    if not isinstance(payload, Decision):
        return False
    result = payload.result
    if isinstance(result, ProvisionResult):
        return bool(result.claims or result.placements or result.unplaced or result.truncated)
    if isinstance(result, ProposedMovesResult):
        return bool(result.proposed)
    if isinstance(result, MoveStepResult):
        return result.step == STARTED or bool(result.begun)
    if isinstance(result, DisruptResult):
        return any(verdict.action == "remove" for verdict in result.verdicts)
    return isinstance(result, StaticResult) and bool(result.claims or result.removed)


class _Recorded:
    """The observations of the recorded turns after a position. Those about what was changed are left out: the change
    stays. So are, once the record has acted (at the time `acted`), the answers to its acts.

    A change moves positions, and with them the names of intents. So an answer is given to the same intent of this
    course; one that answers nothing here is left out.
    """

    def __init__(self, store: Store, position: int) -> None:
        self._position = position
        self._theirs: dict[str, Intent] = {}  # recorded intents without a counterpart yet, by "position.index"
        self._ours: dict[str, Intent] = {}
        self._names: dict[str, str] = {}  # recorded intent → the same one here
        self._turns: Iterator[list[Entry]] = (
            list(turn) for _, turn in groupby(store.scan(position), key=lambda entry: entry.turn)
        )
        self._waiting: list[Entry] | None = next(self._turns, None)
        self._changed: dict[tuple[str, str], Struct | None] = {}  # what is changed, as it was before
        self._left_out: dict[tuple[str, str], LeftOut] = {}
        self.acted = 0
        self._older: dict[str, None] = {}

    @property
    def older(self) -> tuple[str, ...]:
        """The deciders of the turns that were taken which are of an older version, each with both versions."""
        return tuple(self._older)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(self._left_out.values())

    def leave_out(self, observations: Iterable[Observation], state: State) -> None:
        """Leave out what the record shows from here on of what these observations change in a state."""
        payloads = [observation.payload for observation in observations]
        self._changed = {key: _known(state, payload) for payload in payloads if (key := about(payload)) != ("", "")}

    def done(self, entries: Iterable[Entry]) -> None:
        """Take notice of the intents of this course, and find the recorded ones that are the same."""
        self._ours |= _intents(entries)
        for theirs, intent in list(self._theirs.items()):
            ours = next((ref for ref, own in self._ours.items() if own == intent), "")
            if ours:
                self._names[theirs] = ours
                del self._theirs[theirs], self._ours[ours]

    def next_at(self) -> int | None:
        return self._waiting[0].at if self._waiting else None

    def take(self) -> list[Observation]:
        assert self._waiting
        turn, self._waiting = self._waiting, next(self._turns, None)
        for entry in turn:
            _refuse_newer(entry)
            if isinstance(entry.payload, Decision) and entry.payload.version != VERSIONS.get(entry.payload.decider):
                self._older[versions_differ(entry.payload.decider, entry.payload.version)] = None
        observed = [entry for entry in turn if is_observed(entry)]
        seen = [entry.payload for entry in observed if about(entry.payload) not in self._changed]
        for entry in observed:
            key = about(entry.payload)
            was = self._changed.get(key)
            if was is not None and was != entry.payload:
                left_out = LeftOut(key[0], getattr(was, "name", key[1]), entry.position, entry.at)
                self._left_out.setdefault(key, left_out)
        if self.acted:
            seen = [payload for payload in seen if not isinstance(payload, _ANSWERS)]
        elif any(does_something(entry.payload) for entry in turn):
            self.acted = turn[0].at
        self._theirs |= _intents(turn)
        return [Observation(payload) for payload in map(self._renamed, seen) if payload is not None]

    def _renamed(self, payload: Any) -> Any:
        """Return an answer under the name that its intent has here; None if there is no such intent."""
        if not isinstance(payload, LaunchAnswered | EffectAnswered):
            return payload
        asked_at = payload.intent.partition(".")[0]
        if not asked_at.isdecimal() or len(asked_at) > _LONGEST or int(asked_at) <= self._position:
            return payload
        name = self._names.get(payload.intent)
        return replace(payload, intent=name) if name is not None else None


def _intents(entries: Iterable[Entry]) -> dict[str, Intent]:
    return {
        f"{entry.position}.{index}": intent
        for entry in entries
        if isinstance(entry.payload, Decision)
        for index, intent in enumerate(entry.payload.intents)
    }


def about(payload: Any) -> tuple[str, str]:
    """Return what an observation is about, as kind and key; empty texts if that cannot be changed."""
    if isinstance(payload, ObjectGone):
        return payload.kind, payload.key
    if isinstance(payload, SettingsSeen):
        return "settings", "settings"
    if isinstance(payload, CatalogueSeen):
        return "catalogue", payload.node_class
    kind = _KIND_OF.get(type(payload))
    return (kind.name, str(getattr(payload, kind.key))) if kind is not None else ("", "")


def _known(state: State, payload: Any) -> Struct | None:
    """Return the object of a watched kind that an observation is about, as the state has it; None for all else."""
    kind = _KIND_OF.get(type(payload))
    objects = getattr(state.facts, kind.facts) if kind is not None and kind.facts else {}
    return objects.get(getattr(payload, kind.key)) if kind is not None else None


def _refuse_newer(entry: Entry) -> None:
    payload = entry.payload
    newer = ""
    if isinstance(payload, UnknownEntry):
        newer = f"entry {payload.type} schema {payload.schema}"
    elif isinstance(payload, Decision) and payload.version > VERSIONS.get(payload.decider, 0):
        newer = f"{payload.decider} {payload.version}, and today's is {VERSIONS.get(payload.decider, 0)}"
    if newer:
        raise DecidedByNewer(f"this part was recorded by a newer engine: {newer}", where=f"position {entry.position}",
                             hint="Use the kerf that wrote it, or a newer one")  # fmt: skip
