"""What the page may ask of an incident, asked beforehand: the API's answers for its moments, names and decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct, field

from kerf.adapters.web import decisions, questions
from kerf.adapters.web.findings import findings
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.timeline import questions as timeline
from kerf.engine.errors import KerfError
from kerf.projections.explorer.drawn import Drawn
from kerf.projections.json_times import with_times
from kerf.projections.prose.amounts import moment

MOST_MOMENTS, MOST_NAMES, MOST_DECISIONS = 300, 400, 100
"""At most so many are answered: a post-mortem's page is to be small, and made while one waits."""
MOST_STATUS_BYTES = 24_000_000
POINTS = 1_200
Tell = Callable[[int], None]


class Told(Struct, frozen=True):
    """An answer as of a time (ms since the epoch)."""

    at: int
    answer: Any


class Answers(Struct, kw_only=True):
    """The answers of an export, by what was asked. `note` says what is in there, and what is not."""

    since: int
    until: int
    note: str = ""
    record: Any = None
    findings: Any = None
    timeline: Any = None
    curves: Any = None
    tiles: dict[str, Any] = field(default_factory=dict)
    fills: dict[str, Any] = field(default_factory=dict)
    marks: list[Any] = field(default_factory=list)
    log: Any = None
    diff: Any = None
    status: list[Told] = field(default_factory=list)
    explain: dict[str, list[Told]] = field(default_factory=dict)
    story: dict[str, Any] = field(default_factory=dict)
    decision: dict[str, Any] = field(default_factory=dict)
    again: dict[str, Any] = field(default_factory=dict)


def answers_of(reader: RecordReader, since: int, until: int, tell: Tell) -> Answers:
    """Ask all that the page may ask of the record between two times (ms since the epoch). Run it in the reader's
    thread. `tell` is told how many answers there are."""
    drawn = reader.picture.whole()
    answers = Answers(since=since, until=until)
    _time(answers, reader, drawn)
    marks = [mark for mark in drawn.marks if since <= mark.at <= until]
    moments = _thinned(sorted({since, until, *(mark.at for mark in marks)}), MOST_MOMENTS)
    size = 0
    for number, at in enumerate(moments):
        tell(number)
        status = _told(questions.status(reader, moment(at)))
        size += len(msgspec.json.encode(status))
        if size > MOST_STATUS_BYTES:
            break
        answers.status.append(Told(at, status))
    positions = sorted({mark.position for mark in marks})
    _decisions(answers, reader, positions, tell)
    names = _names(answers, drawn)
    _names_explained(answers, reader, list(names.items())[:MOST_NAMES], tell)
    answers.note = _note(answers, reader, len(moments), len(names))
    return answers


def _time(answers: Answers, reader: RecordReader, drawn: Drawn) -> None:
    since, until = answers.since, answers.until
    record = questions.record(reader)
    answers.record = _told(record) | {"since": since, "until": until}
    answers.findings = _told(findings(reader))
    level, _ = drawn.levels()
    answers.timeline = _told(timeline.timeline(reader)) | {
        "finest": level, "coarsest": level, "since": since, "until": until, "read": 1,
    }  # fmt: skip
    answers.curves = _told(timeline.curves(reader, since, until, POINTS))
    for number in range(since >> level, (until >> level) + 1):
        answers.tiles[f"{level}/{number}"] = msgspec.to_builtins(timeline.tile(reader, level, number))
        answers.fills[f"{level}/{number}"] = msgspec.to_builtins(timeline.fill(reader, level, number))
    answers.marks = [msgspec.to_builtins(mark) for mark in drawn.marks if since <= mark.at <= until]
    answers.log = _told(questions.log(reader, since, until, limit=questions.MOST_EVENTS))
    if since < until:
        answers.diff = _told(questions.diff(reader, moment(since), moment(until)))


def _decisions(answers: Answers, reader: RecordReader, positions: list[int], tell: Tell) -> None:
    """Ask of the decisions among these positions."""
    for position in positions:
        if len(answers.decision) >= MOST_DECISIONS:
            return
        tell(len(answers.status) + len(answers.decision))
        try:
            answers.decision[str(position)] = _told(decisions.decision(reader, position))
            answers.again[str(position)] = _told(decisions.again(reader, position))
        except KerfError:  # no decision stands there, or its state is not known any more
            continue


def _names(answers: Answers, drawn: Drawn) -> dict[str, list[int]]:
    """Return what can be clicked, the most important first, each with the times (ms since the epoch) to ask for."""
    since, until = answers.since, answers.until
    names: dict[str, set[int]] = {}

    def add(name: str, at: int) -> None:
        names.setdefault(name, set()).add(min(max(at, since), until))

    for finding in answers.findings["findings"]:
        add(finding["subject"], finding["at"])
        add(finding["subject"], until)
    for told in answers.status:
        for name in sorted({name for node in told.answer["status"]["nodes"] for name in _budgets_of(node)}):
            add(f"poddisruptionbudget/{name}", told.at)
        for workload in told.answer["status"]["waiting"]:
            add(f"pod/{workload['pods'][0]}", told.at)
    for lane in drawn.lanes:
        if lane.start <= until and (not lane.end or lane.end >= since):
            add(f"nodepool/{lane.node_pool}", until)
            for span in lane.spans[-2:]:
                add(f"nodeclaim/{lane.claim}", span.at)
            add(f"nodeclaim/{lane.claim}", until)
            if lane.node:
                add(f"node/{lane.node}", until)
    for told in reversed(answers.status):
        for pods in told.answer["boxes"].values():
            for pod in pods:
                if f"pod/{pod['pod']}" not in names:
                    add(f"pod/{pod['pod']}", told.at)
    return {name: sorted(times) for name, times in names.items() if not name.startswith("decision/")}


def _budgets_of(node: Any) -> list[str]:
    """Return the PodDisruptionBudgets that a node stays for."""
    reason = node["reason"] or {}
    return [*reason.get("params", {}).get("budgets", ())]


def _names_explained(
    answers: Answers, reader: RecordReader, names: Iterable[tuple[str, list[int]]], tell: Tell
) -> None:
    for number, (name, times) in enumerate(names):
        tell(len(answers.status) + len(answers.decision) + number)
        told = []
        for at in times:
            try:
                told.append(Told(at, _told(questions.explain(reader, name, moment(at)))))
            except KerfError:  # it was not there yet, or nobody knows it by this name
                continue
        if told:
            answers.explain[name] = told
            answers.story[name] = _told(questions.story(reader, name, moment(answers.until)))


def _note(answers: Answers, reader: RecordReader, moments: int, names: int) -> str:
    """Say what is in the export, and what is not."""
    shown, explained = len(answers.status), len(answers.explain)
    told = [
        f"{shown} moments" if shown == moments else f"{shown} of {moments} moments",
        f"{len(answers.decision)} decisions" + (", the first ones" if len(answers.decision) == MOST_DECISIONS else ""),
        f"{explained} names" if names <= MOST_NAMES else f"{explained} of {names} names",
    ]
    part = f"{moment(answers.since)} to {moment(answers.until)}"
    return (
        f"An export of {PurePath(reader.record).name}, {part}: {', '.join(told)}. "
        "Between two moments the one before is shown. Not in it: what if, models, other comparisons than that of its "
        "two ends"
    )


def _thinned(times: list[int], most: int) -> list[int]:
    """Return so many of the times at most, evenly, with the first and the last."""
    if len(times) <= most:
        return times
    return [times[index * (len(times) - 1) // (most - 1)] for index in range(most)]


def _told(answer: Struct) -> Any:
    """The answer as the API sends it, in plain values: names are looked up in it."""
    return msgspec.to_builtins(with_times(answer))
