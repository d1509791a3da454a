"""Puts decisions and claim events into the draft of a turn."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Decision, Intent, Result
from kerf.engine.runtime.turn_draft import TurnDraft


def new_decision(draft: TurnDraft, decider: str, version: int, result: Result, intents: tuple[Intent, ...]) -> Decision:
    facts = draft.state.facts
    return Decision(decider, facts.position, draft.now, version, facts.settings_digest, result, intents)


def record_claim_event(draft: TurnDraft, event: Struct, cause: int) -> None:
    """Records a claim event. The claim's aggregate refuses what the state table forbids (KERF701), and numbers it."""
    name: str = event.claim  # type: ignore[attr-defined]
    claims = draft.state.facts.claims
    claim = claims.get(name) or NodeClaim(name=name)
    aggregate = draft.aggregate(claim)
    assert aggregate.version == claim.version, f"{name} is at {claim.version}, its aggregate at {aggregate.version}"
    draft.add(event, cause=cause, version=aggregate.happened(event, at=draft.now).originator_version)
    if name not in claims:
        draft.aggregates.forget(name)
