"""Write a verification report in words, for the command line and for golden tests."""

from __future__ import annotations

import msgspec

from kerf.projections.prose.amounts import count, moment
from kerf.replay.verify.report import Divergence, Report

_KINDS = {
    "missing": "the record lacks an entry that is made now",
    "extra": "the record has an entry that is not made now",
    "different": "another entry is made now",
    "refused": "the recorded entry cannot follow what stands before it",
}


def verdict(report: Report) -> str:
    """Sum up the report in one line."""
    verdicts = {
        0: "same: today's engine makes all of it as recorded, byte for byte"
        if report.imported is not None
        else "same: today's engine decides all of it as recorded, byte for byte",
        1: f"diverged: {count(report.diverged, 'turn')} would be decided otherwise today",
        3: "corrupt: only what is before the damage was verified",
        4: "unsupported: parts of the record cannot be decided again by this version; all else is the same",
    }
    return verdicts[report.exit_code]


def divergence_lines(divergence: Divergence) -> list[str]:
    """Write one divergence: its place, the decisions that differ ("-" recorded, "+" now), the first differing field,
    the versions."""
    was = [f"- {line}" for line in divergence.outcome_was if line not in divergence.outcome_now]
    now = [f"+ {line}" for line in divergence.outcome_now if line not in divergence.outcome_was]
    lines = [
        f"position {divergence.position} ({divergence.type}, {moment(divergence.at)}): {_KINDS[divergence.kind]}",
        *was,
        *now,
    ]
    if divergence.path:
        lines.append(f"{divergence.path}: {_value(divergence.was)} → {_value(divergence.now)}")
    elif divergence.kind == "missing":
        lines.append(f"made now: {_value((divergence.remade or {}).get('payload'))}")
    elif divergence.kind == "extra":
        lines.append(f"recorded: {_value((divergence.recorded or {}).get('payload'))}")
    if divergence.detail:
        lines.append(divergence.detail)
    versions = f"recorded by kerf {divergence.engine_recorded or '?'}, decided again by kerf {divergence.engine}"
    if divergence.version_recorded or divergence.version:
        versions += f"; decision version {divergence.version_recorded or '-'}, today's is {divergence.version or '-'}"
    return [*lines, versions]


def obstacle_lines(report: Report) -> list[str]:
    """Say what kept parts of the record from being decided again."""
    lines = [
        f"cannot be decided again: {count(obstacle.count, 'turn')} from position {obstacle.first} to {obstacle.last} "
        f"({obstacle.reason}: {obstacle.detail})"
        for obstacle in report.unsupported
    ]
    if report.fault is not None:
        fault = report.fault
        at = f" at position {fault.position}" if fault.position else ""
        lines.append(f"{fault.code}: the record is corrupt{at}: {fault.message}")
    return lines


def beginning_lines(report: Report) -> list[str]:
    """Say of a record that does not begin at position 1 from where on it was verified."""
    if report.imported is not None:
        sources = " and ".join(report.imported.sources)
        return [
            f"imported from {sources}: that its claims follow from what was imported is verified. What another "
            "controller decided cannot be decided again"
        ]
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
