"""Write a verification report in words, for the command line and for golden tests."""

from __future__ import annotations

import msgspec

from kerf.engine.record.entry_types import DECISION
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
    turns = sum(change.differs for change in report.declared)
    if turns and report.exit_code == 0:
        return f"same but for {count(turns, 'declared difference')}: all else is decided as recorded"
    verdicts = {
        0: f"same: today's engine {'makes' if _is_history(report) else 'decides'} all of it as recorded, byte for byte",
        1: f"diverged: {count(report.diverged, 'turn')} would be decided otherwise today",
        3: "corrupt: only what is before the damage was verified",
        4: "unsupported: parts of the record cannot be decided again by this version; all else is the same",
    }
    return verdicts[report.exit_code]


def divergence_lines(divergence: Divergence) -> list[str]:
    """Write one divergence: its place, the decisions that differ ("-" recorded, "+" now; "=" where both come to
    the same in these words), the first differing field, the versions."""
    was = [f"- {line}" for line in divergence.outcome_was if line not in divergence.outcome_now]
    now = [f"+ {line}" for line in divergence.outcome_now if line not in divergence.outcome_was]
    lines = [
        f"position {divergence.position} ({_made(divergence)}, {moment(divergence.at)}): {_KINDS[divergence.kind]}",
        *was,
        *now,
        *([f"= {line}" for line in divergence.outcome_now] if not was and not now else []),
    ]
    # a decision that its words tell of is not shown as JSON besides
    in_words = divergence.type == DECISION.name and bool(was or now)
    if divergence.path:
        lines.append(f"{divergence.path}: {_value(divergence.was)} → {_value(divergence.now)}")
    elif divergence.kind == "missing" and not in_words:
        lines.append(f"made now: {_value((divergence.remade or {}).get('payload'))}")
    elif divergence.kind == "extra" and not in_words:
        lines.append(f"recorded: {_value((divergence.recorded or {}).get('payload'))}")
    if divergence.detail:
        lines.append(divergence.detail)
    versions = f"recorded by kerf {divergence.engine_recorded or '?'}, decided again by kerf {divergence.engine}"
    if divergence.version_recorded or divergence.version:
        versions += f"; decision version {divergence.version_recorded or '-'}, today's is {divergence.version or '-'}"
    return [*lines, versions]


def _made(divergence: Divergence) -> str:
    """Say what differs: the type of the entry, and who decided it."""
    return f"{divergence.type} by {divergence.decider}" if divergence.decider else divergence.type


def declared_lines(report: Report) -> list[str]:
    """Say which declared changes were met, how many turns differ by them, and why."""
    lines = []
    for change in report.declared:
        what = f"{change.what} {change.recorded} → {change.version}" if change.version else change.what
        differs = f"{count(change.differs, 'turn')} differ" if change.differs != 1 else "1 turn differs"
        first = f", the first at position {change.first}" if change.differs else ""
        why = f": {change.why}" if change.why else ""
        lines.append(f"declared: {what}, {change.made_again} made again, {differs}{first}{why}")
    return lines


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
    if report.imported is not None and report.imported.captured:
        return [f"captured from a cluster at {moment(report.imported.since)}: what it was before is not in the record"]
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


def _is_history(report: Report) -> bool:
    return report.imported is not None and not report.imported.captured


def _value(value: object) -> str:
    shown = msgspec.json.encode(value).decode()
    return shown if len(shown) <= 200 else shown[:200] + "…"
