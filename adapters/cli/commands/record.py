"""Commands on a record: log, at, explain, story, verify. RECORD is a .kerf file, the URL of a
record in PostgreSQL, a .kerfb bundle or a golden folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from kerf.adapters.cli.parameters import Json, When
from kerf.adapters.cli.records import opened
from kerf.adapters.cli.render.output import Printer, emit_json, emit_json_line, progress_line
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import AnyStore
from kerf.engine.errors import InputError
from kerf.engine.record.entries import Entry
from kerf.engine.state.load import load
from kerf.projections.prose.amounts import duration, moment
from kerf.replay.errors import PositionUnknown
from kerf.replay.subject_names import kind_of, with_canonical_kind
from kerf.replay.time_travel.positions import locate, time_after_end, time_of
from kerf.replay.time_travel.record_beginning import base_as_entries
from kerf.replay.time_travel.state_summary import summarize

FOLLOWED_EVERY = 0.5  # seconds between looks at a record that is followed
_KINDS = ("pod", "node", "nodeclaim", "decision")


def verify(
    record: str, /, *, limit: Annotated[int, Parameter(validator=Number(gte=0))] = 20, json: Json = False
) -> int:
    """Decide every recorded decision again, and compare byte for byte.

    Exit codes: 0 same, 1 diverged, 3 corrupt, 4 parts need another version of kerf.

    Examples: `kerf verify incident.kerfb`, `kerf verify record.kerf --json`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    limit
        So many divergences are shown; all are counted.
    json
        Print the whole report as JSON.
    """
    from kerf.adapters.cli.render.record import report_text
    from kerf.replay.verify.verify import verify as decide_again

    with opened(record) as store, progress_line("decided again up to position") as progress:
        report = decide_again(store, keep=limit, progress=progress)
    if json:
        emit_json(report)
    else:
        report_text(Printer(), report)
    return report.exit_code


def at(record: str, when: When = "end", /, *, json: Json = False) -> None:
    """Show the state at a position or a time.

    Examples: `kerf at record.kerf 1234`, `kerf at record.kerf +2h`, `kerf at record.kerf 2026-05-01T10:00:00Z --json`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    when
        A position, an RFC 3339 time, "+2h" from the start, "-5m" before the end, "start" or "end".
    json
        Print JSON.
    """
    from kerf.adapters.cli.render.record import summary_text

    with opened(record) as store:
        found = summarize(load(store, _located(store, when)))
    if json:
        emit_json(found)
    else:
        summary_text(Printer(), found)


def log(
    record: str,
    /,
    *,
    since: When = "",
    until: When = "",
    subject: str = "",
    all: Annotated[bool, Parameter(negative="")] = False,
    karpenter: Annotated[bool, Parameter(negative="")] = False,
    follow: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Tell what happened, in order. Exit codes: 0 told, 1 nothing concerns the subject, 2 usage.

    Examples: `kerf log record.kerf`,
    `kerf log record.kerf --since -10m --all`,
    `kerf log record.kerf --subject default/web-1`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    since
        Begin here: a position, an RFC 3339 time, "+2h" from the start, "-5m" before the end.
    until
        End here, likewise.
    subject
        Only what concerns this pod (namespace/name), node, NodeClaim, NodePool or instance.
    all
        Also what is of little interest on most days.
    karpenter
        Print the log lines that Karpenter would write, as JSON lines.
    follow
        Go on with what a controller adds, until Ctrl-C.
    json
        Print one event a line as JSON.
    """
    from kerf.adapters.cli.render.record import event_line
    from kerf.projections.karpenter_logs import KarpenterLog
    from kerf.projections.timeline.event import DEBUG, Event
    from kerf.projections.timeline.grouping import group_events
    from kerf.replay.history.story import timeline_from_base

    with opened(record) as store:
        after = _before(store, since) if since else 0
        late = time_after_end(store, since) if since and not follow else None
        if late is not None:
            print(f"Nothing is in the record since then: its last entry is of {moment(late.last)}", file=sys.stderr)
        last = locate(store, until) if until else None
        if last is not None and last <= after:
            raise PositionUnknown(
                f"--since {since} is later than --until {until}", hint="Give the earlier one to --since"
            )
        if karpenter:
            lines = KarpenterLog()
            for entry in base_as_entries(store):
                lines.apply(entry)
            for entry in _entries(store, last, follow):
                for line in lines.apply(entry):
                    if entry.position > after:
                        emit_json_line(line)
            return 0
        timeline, printer = timeline_from_base(store), Printer()
        known = False

        def told() -> Iterator[Event]:
            nonlocal known
            for entry in _entries(store, last, follow):
                for event in timeline.apply(entry):
                    if not subject or _concerns(subject, (event.subject, *event.related)):
                        known = True
                        if entry.position > after and (all or event.level != DEBUG):
                            yield event

        if json:
            for event in told():
                emit_json_line(event)
        else:
            for event in told() if follow else group_events(told()):  # a group is known when its last one is there
                printer.line(event_line(event, timeline.started), event.level)
        if subject and not known:
            where = f"the record up to {until}" if until else "the record"
            print(f"Nothing in {where} concerns {subject}: kerf log {record} --all has the names", file=sys.stderr)
            return 1
    return 0


def _entries(store: AnyStore, last: int | None, follow: bool) -> Iterator[Entry]:
    """From the beginning; with `follow` also those that are added later, for ever, unless `last` ends it. A file that
    nobody adds to is not waited for."""
    position = 0
    while True:
        for entry in store.scan(position, last):
            position = entry.position
            yield entry
        if not follow or not isinstance(store, ChainedStore) or (last is not None and position >= last):
            return
        sys.stdout.flush()
        time.sleep(FOLLOWED_EVERY)


def explain(record: str, kind: str, name: str = "", /, *, at: When = "end", json: Json = False) -> None:
    """Explain why a pod, node or NodeClaim is as it is, or a decision.

    Examples: `kerf explain record.kerf pod default/web-1`,
    `kerf explain record.kerf node ip-10-0-1-2 --at +2h`,
    `kerf explain record.kerf decision 1234 --json`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    kind
        What to explain: pod, node, nodeclaim or decision; or that and the name in one, as in node/ip-10-0-1-2. Plurals
        and short names do as well, as with kubectl: nodes, no, po.
    name
        A pod's namespace/name, the name of a node or NodeClaim, or a decision's position.
    at
        As of a position or time (see kerf at).
    json
        Print JSON: structs with coded reasons.
    """
    from kerf.adapters.cli.render.explanation import claim_text, decision_text, pod_text
    from kerf.replay.explain.claim import explain_claim, explain_node
    from kerf.replay.explain.decision import explain_decision
    from kerf.replay.explain.pod import explain_pod
    from kerf.replay.verify.decision_lines import decision_lines

    kind, name = _subject(kind, name)
    with opened(record) as store:
        position = None if at == "end" else _located(store, at)
        printer = Printer()
        if kind == "pod":
            pod = explain_pod(store, name, position)
            emit_json(pod) if json else pod_text(printer, pod)
        elif kind == "decision":
            decision = explain_decision(store, _position(name))
            emit_json(decision) if json else decision_text(printer, decision, decision_lines(decision.result))
        else:
            claim = (explain_node if kind == "node" else explain_claim)(store, name, position)
            emit_json(claim) if json else claim_text(printer, claim)


def story(record: str, name: str, rest: str = "", /, *, at: When = "end", json: Json = False) -> None:
    """Tell the story of one pod, node or NodeClaim: what happened to it, why, and what came of it.

    Examples: `kerf story record.kerf default/web-1`,
    `kerf story record.kerf default-x7k2m`,
    `kerf story record.kerf ip-10-0-1-2 --json`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    name
        A pod's namespace/name, or the name of a node, NodeClaim or instance; "node/NAME" where that is not clear.
    rest
        The name, where its kind stands before it: node ip-10-0-1-2.
    at
        Up to a position or time (see kerf at).
    json
        Print JSON.
    """
    from kerf.adapters.cli.render.record import story_text
    from kerf.replay.history.story import story as story_of

    with opened(record) as store:
        found = story_of(store, f"{name}/{rest}" if rest else name, None if at == "end" else _located(store, at))
        started = next(entry.at for entry in store.scan())
    if json:
        emit_json(found)
    else:
        story_text(Printer(), found, started)


def _located(store: AnyStore, when: str) -> int:
    """As `locate`. A time after the last entry is answered as of that entry, and who asked is told so."""
    late = time_after_end(store, when)
    if late is not None:
        print(
            f"Note: {moment(late.asked)} is {duration(late.asked - late.last)} after the record's last entry (position "
            f"{late.position}): the answer is as of {moment(late.last)}",
            file=sys.stderr,
        )
    return locate(store, when)


def _before(store: AnyStore, text: str) -> int:
    """The position before the first entry at or after a time, or before a position."""
    if text.strip().isascii() and text.strip().isdigit():
        return locate(store, text) - 1
    time = time_of(store, text)
    position = max(0, locate(store, "start") - 1)
    for entry in store.scan():
        if entry.at >= time:
            break
        position = entry.position
    return position


def _subject(kind: str, name: str) -> tuple[str, str]:
    """Kind and name, given as two words or, as kubectl takes them, as one."""
    word, _, rest = (kind, "", name) if name else kind.partition("/")
    known = kind_of(word)
    if known in _KINDS and rest:
        return known, rest
    said = f"{word!r} is nothing to explain" if known not in _KINDS else f"which {known} is not said"
    hint = "kerf explain RECORD pod NAMESPACE/NAME, or node NAME, nodeclaim NAME, decision POSITION"
    raise InputError(said, hint=hint, code="KERF200")


def _position(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise PositionUnknown(f"{text!r} is not a position", hint="kerf log RECORD --all shows the positions")
    return int(text)


def _concerns(subject: str, names: tuple[str, ...]) -> bool:
    wanted = (subject, with_canonical_kind(subject))
    return any(name in wanted or name.partition("/")[2] == subject for name in names)
