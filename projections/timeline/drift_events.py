"""Make timeline events of drift: which NodeClaims drifted, and in which fields."""

from __future__ import annotations

from kerf.engine.record.decisions import DisruptResult, Verdict
from kerf.engine.record.entries import Entry
from kerf.engine.state.nodeclaims.drift import DRIFTED
from kerf.projections.prose.drift import differences_words
from kerf.projections.timeline.event import INFO, Event


def drift_events(result: DisruptResult, entry: Entry) -> list[Event]:
    """One event for each verdict."""
    return [_event(verdict, entry) for verdict in result.verdicts]


def _event(verdict: Verdict, entry: Entry) -> Event:
    fields = differences_words(verdict.differences)
    drifted = "claim-drifted-fields" if fields else "claim-drifted"
    return Event(
        position=entry.position,
        turn=entry.turn,
        at=entry.at,
        code=drifted if verdict.action == DRIFTED else "claim-as-asked",
        level=INFO,
        subject=f"nodeclaim/{verdict.claim}",
        params={"differences": fields} if fields else {},
        reason=verdict.reason,
        cause=entry.cause,
    )
