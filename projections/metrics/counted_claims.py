"""What counters keep of a NodeClaim until it is over, and the labels that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, DisruptionReason, metric_label
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.labels import ZONE_ID
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.effect_keys import DELETE_NODE, TERMINATE
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.engine.state.state import State

_POLICIES = {
    "WhenEmpty": "when_empty", "WhenEmptyOrUnderutilized": "when_empty_or_underutilized", "Balanced": "balanced",
}  # fmt: skip


class CountedClaim(Struct):
    """A NodeClaim, as far as the labels of its metrics need it.

    `detail` is the kind of the message that it was interrupted by, or the condition that its node is repaired for.
    `leaves` is since when it is on its way out (ms since the epoch): it no longer waits for what replaces it. `goes`:
    it is, and has been counted. `in_service`: it was initialized once. `ends` is when the end of its instance was asked
    for.
    """

    node_pool: str = ""
    capacity_type: str = ""
    zone: str = ""
    node: str = ""
    image: str = ""
    grace: int | None = None
    leaves: int = 0
    why: str = ""
    goes: bool = False
    detail: str = ""
    zone_id: str = ""
    in_service: bool = False
    ends: int = 0

    def goes_for(self, why: str, detail: str) -> None:
        """Note the reason for which it goes."""
        self.why, self.detail = why, detail


def counted_claims(state: State, untold: Iterable[Entry]) -> dict[str, CountedClaim]:
    """Return the claims of the state that a process begins with, by name. An earlier process has counted what went
    before. `untold` are entries that nobody has counted yet: those of the turn in which this process took office."""
    events: dict[str, list[object]] = {}
    for entry in untold:
        events.setdefault(entry.stream, []).append(entry.payload)
    claims = state.facts.claims.items()
    return {name: counted_claim(claim, events.get(f"nodeclaim/{name}", ())) for name, claim in claims}


def counted_claim(claim: NodeClaim, untold: Sequence[object] = ()) -> CountedClaim:
    """Return what is kept of one claim. `untold` are its events that are still to be counted."""
    why, leaves = claim.why, leaves_since(claim)
    if not why and (deletion := claim.effect(DELETE_NODE)) is not None:  # its instance is gone, and so is its Node soon
        why, leaves = LifecycleCode.GARBAGE_COLLECTED.value, deletion.first_asked
    return CountedClaim(
        claim.node_pool, claim.capacity_type, claim.zone, claim.node, claim.image, claim.termination_grace_period,
        leaves, why, _went_before(claim, why, untold),
        detail=claim.interruption, zone_id=claim.labels.get(ZONE_ID, ""), in_service=bool(claim.initialized),
        ends=end.first_asked if (end := claim.effect(TERMINATE)) is not None else 0,
    )  # fmt: skip


def _went_before(claim: NodeClaim, why: str, untold: Sequence[object]) -> bool:
    """Whether a claim was on its way out before its untold events."""
    drains = bool(claim.drain_started)
    for event in reversed(untold):
        if isinstance(event, ev.DrainStarted):
            drains = False
        elif isinstance(event, ev.Tainted | ev.ReasonRaised):
            why = event.was if isinstance(event, ev.ReasonRaised) else ""
    return drains or bool(why and why not in BUDGET_REASONS)


def leaves_since(claim: NodeClaim) -> int:
    """Return since when a claim is on its way out (ms since the epoch), 0 if it is not. A candidate of a move is not
    until it goes: before, its NodeClaim is not deleted (D-116)."""
    return claim.drain_started or (0 if claim.why in BUDGET_REASONS else claim.tainted)


def disruption_labels(claim: CountedClaim, pool: NodePool | None) -> tuple[str, ...]:
    """Return the labels of metrics about disruption (X in L-364, M-13). An interruption counts by the kind of its
    message, and Karpenter's interruption controller knows neither policy nor mode (A-362)."""
    if claim.why == DisruptionReason.INTERRUPTED:
        return claim.node_pool, claim.detail or metric_label(claim.why), claim.capacity_type, "", ""
    policy = ""
    if pool is not None and claim.why in (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED):
        policy = _POLICIES.get(pool.consolidation_policy, pool.consolidation_policy)
    mode = "graceful" if claim.grace is None else "eventual" if claim.grace > 0 else "forceful"
    return claim.node_pool, metric_label(claim.why), claim.capacity_type, policy, mode
