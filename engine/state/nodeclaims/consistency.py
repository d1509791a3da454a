"""The fold of consistency decisions: what the state keeps of a claim's latest one (L-241)."""

from __future__ import annotations

from kerf.engine.record.decisions import LifecycleResult
from kerf.engine.record.entries import Entry
from kerf.engine.state.state import State

CONSISTENCY = "consistency"
"""The decider's name."""


def consistency_decided(state: State, result: LifecycleResult, entry: Entry) -> None:
    claim = state.facts.claims.get(result.claim)
    if claim is not None:
        short = result.reason.params.get("resources", [])
        claim.inconsistent = tuple(short) if isinstance(short, list) else ()
        claim.inconsistent_changed = entry.at
