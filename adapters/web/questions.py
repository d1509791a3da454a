"""What the explorer's API answers: each function takes the reader and a question's parameters, and returns structs.

The answers are those of the commands of the same name, with the command's own text beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import islice, takewhile
from typing import Any

from msgspec import Struct

from kerf.adapters.cli.render.explain.explanation import explanation_text
from kerf.adapters.cli.render.moment.difference import difference_text
from kerf.adapters.cli.render.moment.status import status_text
from kerf.adapters.cli.render.record import story_text
from kerf.adapters.web.decisions import Funnel, decision, funnels_of
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.rendered import LinesPrinter, TextLine
from kerf.adapters.web.searching import search
from kerf.adapters.web.stories import StoryEvent, story_events
from kerf.adapters.web.timeline.window import entries_since
from kerf.engine.model.missing_knowledge import words_of
from kerf.engine.record.entries import Entry
from kerf.projections.cluster_status.structs import ClusterStatus
from kerf.projections.cluster_status.words import ground_words
from kerf.projections.differences.structs import StateDifference
from kerf.projections.explorer.boxes import BoxPod, boxes
from kerf.projections.prose.amounts import moment
from kerf.projections.timeline.event import DEBUG, Event, event_sentence
from kerf.projections.timeline.grouping import group_events
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.explain.subject import explain as explain_subject
from kerf.replay.history.indexed_timeline import chosen_events
from kerf.replay.history.story import Story
from kerf.replay.history.story import story as story_of
from kerf.replay.partial_records import imported_from
from kerf.replay.time_travel.difference import difference_of
from kerf.replay.time_travel.moments import end_of, moment_of
from kerf.replay.time_travel.status import status_of

MOST_EVENTS = 1_000
_TOLD_BY_PLANS = ("decision/", "pod/")
"""What plans tell is about decisions, and about pods: also about room to keep free, which no entry names as a pod."""


class RecordAnswer(Struct, frozen=True, kw_only=True):
    """The record: its first and last entry, times in ms since the epoch. From `known` on the cluster's state is known:
    later than `since` where the record was cut. `lacks` says what a partial one does not tell."""

    record: str
    first: int
    last: int
    since: int
    until: int
    known: int
    captured: bool = False
    lacks: tuple[str, ...] = ()


class StatusAnswer(Struct, frozen=True):
    """`kerf status`, its text, and the pods of each Node. `grounds` are those of the verdict in words."""

    status: ClusterStatus
    grounds: list[str]
    boxes: dict[str, tuple[BoxPod, ...]]
    text: list[TextLine]
    command: str


class EventAnswer(Struct, frozen=True):
    """An event of `kerf log`. `subjects` are those that it concerns, with their kind."""

    position: int
    at: int
    level: str
    subjects: tuple[str, ...]
    text: str


class LogAnswer(Struct, frozen=True):
    """Events in order. `more` says that there are more of them before `until`."""

    events: list[EventAnswer]
    more: bool
    command: str


class ExplainAnswer(Struct, frozen=True):
    """`explanation` is as `kerf explain --json` has it: a struct for each kind of subject, which msgspec cannot put
    into one schema. `funnels` say what ruled instance types out for a pod, or for a node when it was launched."""

    explanation: Any
    funnels: list[Funnel]
    text: list[TextLine]
    command: str


class StoryAnswer(Struct, frozen=True):
    """`kerf story`; `events` are in sentences."""

    story: Story
    events: list[StoryEvent]
    text: list[TextLine]
    command: str


class DiffAnswer(Struct, frozen=True):
    difference: StateDifference
    text: list[TextLine]
    command: str


def record(reader: RecordReader) -> RecordAnswer:
    """The record: which it is, from when to when, and what it does not tell."""
    start, end, imported = moment_of(reader.store, "start"), end_of(reader.store), imported_from(reader.store)
    return RecordAnswer(
        record=reader.record,
        first=start.position,
        last=end.position,
        since=start.at,
        until=end.at,
        known=moment_of(reader.store, str(reader.store.first_position())).at,
        captured=imported is not None and imported.captured,
        lacks=tuple(words_of(code) for code in imported.lacks) if imported is not None else (),
    )


def status(reader: RecordReader, at: str = "") -> StatusAnswer:
    """The cluster at a moment: what waits and why, each node with its pods, what is under way."""
    asked = reader.moment(at)
    state = reader.state(asked)
    found, printer = status_of(reader.store, state, asked.at), LinesPrinter()
    status_text(printer, found, all_nodes=False)
    grounds = [ground_words(ground) for ground in found.verdict.grounds]
    return StatusAnswer(found, grounds, boxes(state), printer.lines, f"kerf status {reader.quoted}{_at(at)}")


def log(reader: RecordReader, since: int = 0, until: int = 0, subject: str = "", limit: int = 200) -> LogAnswer:
    """What happened from `since` to `until` (ms since the epoch), in order; of one subject where it is named."""
    wanted = (event for event in group_events(_events(reader, since, until, subject)) if event.level != DEBUG)
    limit = max(1, min(limit, MOST_EVENTS))
    found = list(islice(wanted, limit + 1))
    told = [
        EventAnswer(event.position, event.at, event.level, (event.subject, *event.related), event_sentence(event))
        for event in found[:limit]
    ]
    window = [f"--since {moment(since)}" if since else "", f"--until {moment(until)}" if until else ""]
    asked = [f"kerf log {reader.quoted}", *window, f"--subject {subject}" if subject else ""]
    return LogAnswer(told, len(found) > limit, " ".join(filter(None, asked)))


def _events(reader: RecordReader, since: int, until: int, subject: str) -> Iterator[Event]:
    """Give the events from `since` to `until`; of one subject where it is named."""

    def choose(timeline: Timeline, entries: Iterable[Entry]) -> Iterator[Event]:
        for entry in takewhile(lambda entry: not until or entry.at <= until, entries):
            for event in timeline.apply(entry):
                if since <= event.at and (not subject or subject in (event.subject, *event.related)):
                    yield event

    named = reader.named(reader.store.last_position()) if subject else None
    if named is not None:
        about = None if subject.startswith(_TOLD_BY_PLANS) else [subject]
        yield from chosen_events(reader.store, named, [subject.partition("/")[2]], choose, subjects=about)
    else:
        entries, timeline = entries_since(reader.store, since)
        yield from choose(timeline, entries)


def explain(reader: RecordReader, name: str, at: str = "") -> ExplainAnswer:
    """Why anything that has a name is as it is at a moment, or a decision ("decision/POSITION")."""
    asked, printer = reader.moment(at), LinesPrinter()
    named = reader.named(asked.position)
    with ExitStack() as stack:
        state = partial(stack.enter_context, reader.state_then(asked))
        found = explain_subject(reader.store, name, asked.position, asked.at, named, state)
    explanation_text(printer, found)
    return ExplainAnswer(found, funnels_of(found), printer.lines, f"kerf explain {reader.quoted} {name}{_at(at)}")


def story(reader: RecordReader, name: str, at: str = "") -> StoryAnswer:
    """What happened to anything that has a name, up to a moment, why, and what came of it."""
    printer, start, until = LinesPrinter(), moment_of(reader.store, "start"), reader.moment(at).position
    found = story_of(reader.store, name, until, reader.named(until))
    grouped = list(group_events(found.events))
    story_text(printer, found, start.at, grouped)
    return StoryAnswer(found, story_events(grouped), printer.lines, f"kerf story {reader.quoted} {name}{_at(at)}")


def diff(reader: RecordReader, before: str, after: str) -> DiffAnswer:
    """What is different between two moments."""
    printer, found = LinesPrinter(), difference_of(reader.store, reader.moment(before), reader.moment(after))
    difference_text(printer, found)
    return DiffAnswer(found, printer.lines, f"kerf diff {reader.quoted} {before} {after}")


def _at(at: str) -> str:
    return f" --at {at}" if at else ""


def looks_for_a_name(question: Callable[..., Any], asked: Mapping[str, Any]) -> bool:
    """Return whether a question is about names, which are looked for in the whole record."""
    return question in (explain, story, decision, search) or (question is log and bool(asked.get("subject")))
