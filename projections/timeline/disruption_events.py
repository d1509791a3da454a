"""Make timeline events of verdicts and moves."""

from __future__ import annotations

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.record.decisions import Move, Verdict
from kerf.engine.record.entries import Entry
from kerf.projections.prose.amounts import count, first_names
from kerf.projections.timeline.entry_events import make_event
from kerf.projections.timeline.event import DEBUG, INFO, WARNING, Event


def verdict_event(verdict: Verdict, entry: Entry) -> Event:
    if verdict.action == "note":
        level = WARNING if verdict.reason.code == DisruptionCode.REPAIR_BLOCKED else INFO
        return make_event(entry, "claim-noted", level, f"nodeclaim/{verdict.claim}", reason=verdict.reason)
    stays = verdict.action == "keep"
    code, level = ("claim-kept", DEBUG) if stays else ("claim-condemned", INFO)
    return make_event(entry, code, level, f"nodeclaim/{verdict.claim}", reason=verdict.reason)


def move_event(code: str, level: str, move: Move, entry: Entry) -> Event:
    names = [new.name for new in move.replacements if new.name]
    first = f"{first_names(names)} first" if names else f"{count(len(move.replacements), 'new node')} first"
    return make_event(
        entry, code, level, "decision/move", tuple(f"nodeclaim/{name}" for name in (*move.claims, *names)),
        why=move.why, who=first_names(move.claims), first=f", {first}" if move.replacements else "",
        savings=move.savings,
    )  # fmt: skip
