"""Say why nodes stay with a change, where the decision itself does not: they are no candidates at that time."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.cluster_from_state import cluster_when_moves_start
from kerf.engine.disruption.eligibility import find_candidates
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.reasons import Reason
from kerf.engine.state.state import State
from kerf.replay.what_if.comparison import STAYS, Difference


def with_reasons_to_stay(differences: Iterable[Difference], state: State, now: int) -> tuple[Difference, ...]:
    """Return the differences, each node that stays with why consolidation may not take it at `now`."""
    given = tuple(differences)
    if not any(difference.what == STAYS and not difference.reasons for difference in given):
        return given
    reasons = _excluded(state, now)
    return tuple(
        replace(difference, reasons=(reasons[difference.name],))
        if difference.what == STAYS and not difference.reasons and difference.name in reasons
        else difference
        for difference in given
    )


def _excluded(state: State, now: int) -> dict[str, Reason]:
    """By claim, why it is no candidate of consolidation; for an empty node, why it does not go as that. Of candidates,
    what the latest pass said."""
    cluster = cluster_when_moves_start(state, now)
    claims = {node.name: node.place.claim for node in cluster.nodes}
    excluded = find_candidates(cluster, eligibility.consolidation).excluded
    as_empty = find_candidates(cluster, eligibility.emptiness).excluded
    told = {name: Reason(claim.verdict) for name, claim in state.facts.claims.items() if claim.verdict}
    return told | {
        claims[name]: as_empty.get(name, reason) if reason.code == DisruptionReason.EMPTY else reason
        for name, reason in excluded.items()
    }
