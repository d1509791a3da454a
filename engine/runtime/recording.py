"""How decisions and claim events enter the record in a turn."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.nodeclaim.aggregate import NodeClaimAggregate
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Decision, Intent, Result
from kerf.engine.runtime.turn_draft import Draft


def decision(draft: Draft, decider: str, version: int, result: Result, intents: tuple[Intent, ...]) -> Decision:
    facts = draft.state.facts
    return Decision(decider, facts.position, draft.now, version, facts.settings_digest, result, intents)


def happened(draft: Draft, event: Struct, cause: int) -> None:
    """A claim event passes through the aggregate, which refuses what the state table forbids and numbers it."""
    name: str = event.claim  # type: ignore[attr-defined]
    claim = draft.state.facts.claims.get(name) or NodeClaim(name=name)
    number = NodeClaimAggregate.of(claim).happened(event, at=draft.now).originator_version
    entry = draft.add(event, cause=cause)
    assert entry.version == number, f"stream nodeclaim/{name} is at {entry.version}, its aggregate at {number}"
