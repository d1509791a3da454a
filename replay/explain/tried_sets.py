"""Run a recorded disruption pass again, to show which sets of nodes it tried."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from kerf.engine.disruption import disruption_pass
from kerf.engine.disruption.consolidation.commands import Command
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, ProposedMovesResult
from kerf.engine.record.errors import BlobMissing, RecordShortened
from kerf.engine.record.store import Store
from kerf.engine.state.load import load


class TriedSet(Struct, frozen=True, kw_only=True):
    """Nodes, by name, that were tried together: what was found when they were tried first. Later, others go as well.

    `reason` says why they cannot go; with None they could, by `action` ("delete" or "replace"), to save so much (USD
    per hour) with so many evictions. `chosen`: the pass proposed it.
    """

    nodes: tuple[str, ...]
    reason: Reason | None = None
    action: str = ""
    savings: float = 0.0
    evictions: int = 0
    chosen: bool = False


def tried_sets(store: Store, decision: Decision) -> tuple[TriedSet, ...] | None:
    """Return what the search one after the other tried: chosen sets first, then those that could have gone, then the
    others, the largest first. None for another decision than a pass of today's version, or one that cannot be decided
    again."""
    if not isinstance(decision.result, ProposedMovesResult) or decision.version != disruption_pass.VERSION:
        return None
    found: dict[tuple[str, ...], Command | Reason] = {}

    def tell(names: tuple[str, ...], outcome: Command | Reason) -> None:
        if names not in found or (isinstance(outcome, Reason) and outcome.code == DisruptionCode.LEFT_OVER):
            found[names] = outcome

    with suppress(BlobMissing, RecordShortened):
        state = load(store, decision.looked_at)
        disruption_pass.run_pass(state, decision.now, tell)
        proposed = {
            frozenset(name for claim in move.claims if (name := state.facts.claims[claim].node))
            for move in decision.result.proposed
        }
        tried = (_tried(names, outcome, frozenset(names) in proposed) for names, outcome in found.items())
        return tuple(sorted(tried, key=_order))
    return None


def _tried(names: tuple[str, ...], outcome: Command | Reason, chosen: bool) -> TriedSet:
    if isinstance(outcome, Reason):
        return TriedSet(nodes=names, reason=outcome)
    return TriedSet(
        nodes=names,
        action=str(outcome.decision),
        savings=round(outcome.savings, 6),
        evictions=outcome.evictions,
        chosen=chosen,
    )


def _order(tried: TriedSet) -> tuple[bool, bool, float, int, tuple[str, ...]]:
    return not tried.chosen, tried.reason is not None, -tried.savings, -len(tried.nodes), tried.nodes
