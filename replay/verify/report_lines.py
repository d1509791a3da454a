"""A verification report in words, for the command line and for golden tests."""

from __future__ import annotations

import msgspec

from kerf.projections.prose.reasons import count, moment
from kerf.replay.verify.report import Divergence, Report

_KINDS = {
    "missing": "the record lacks an entry that is made now",
    "extra": "the record has an entry that is not made now",
    "different": "another entry is made now",
    "refused": "the recorded entry cannot follow what stands before it",
}


def verdict(report: Report) -> str:
    """The report in one line."""
    verdicts = {
        0: "same: today's engine decides all of it as recorded, byte for byte",
        1: f"diverged: {count(report.diverged, 'turn')} would be decided otherwise today",
        3: "corrupt: only what is before the damage was verified",
        4: "unsupported: parts of the record cannot be decided again by this version; all else is the same",
    }
    return verdicts[report.exit_code]


def divergence_lines(found: Divergence) -> list[str]:
    """Where; what is decided otherwise ("-" recorded, "+" now); the first field that differs; the versions."""
    was = [f"- {line}" for line in found.outcome_was if line not in found.outcome_now]
    now = [f"+ {line}" for line in found.outcome_now if line not in found.outcome_was]
    lines = [f"position {found.position} ({found.type}, {moment(found.at)}): {_KINDS[found.kind]}", *was, *now]
    if found.path:
        lines.append(f"{found.path}: {_value(found.was)} → {_value(found.now)}")
    elif found.kind == "missing":
        lines.append(f"made now: {_value((found.remade or {}).get('payload'))}")
    elif found.kind == "extra":
        lines.append(f"recorded: {_value((found.recorded or {}).get('payload'))}")
    if found.detail:
        lines.append(found.detail)
    versions = f"recorded by kerf {found.engine_recorded or '?'}, decided again by kerf {found.engine}"
    if found.version_recorded or found.version:
        versions += f"; decision version {found.version_recorded or '-'}, today's is {found.version or '-'}"
    return [*lines, versions]


def obstacle_lines(report: Report) -> list[str]:
    """What kept parts of the record from being decided again."""
    lines = [
        f"cannot be decided again: {count(each.count, 'turn')} from position {each.first} to {each.last} "
        f"({each.reason}: {each.detail})"
        for each in report.unsupported
    ]
    if report.fault is not None:
        fault = report.fault
        lines.append(f"{fault.code}: the record is corrupt at position {fault.position}: {fault.message}")
    return lines


def beginning_lines(report: Report) -> list[str]:
    """Of a record that does not begin at position 1, from where on it was verified."""
    if not report.base:
        return []
    lines = [
        f"begins after position {report.base}, {moment(report.base_at)}: verified from the state of then; "
        "what was before cannot be decided again"
    ]
    if report.kept:
        kept = count(report.kept, "entry").replace("entrys", "entries")
        lines.append(f"{kept} of claims and decisions are kept from before, unchanged")
    return lines


def _value(value: object) -> str:
    shown = msgspec.json.encode(value).decode()
    return shown if len(shown) <= 200 else shown[:200] + "…"
