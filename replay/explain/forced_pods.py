"""Say why pods of a drain were deleted by force: which time was over, and what had kept them until then."""

from __future__ import annotations

from kerf.engine.model.reasons import Reason
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import RecordShortened
from kerf.engine.record.observations import EffectAnswered
from kerf.engine.record.store import Store
from kerf.engine.state.load import load
from kerf.projections.cluster_status.draining_pods import draining_pods
from kerf.projections.prose.amounts import duration, moment
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.replay.history.histories import ClaimHistory, Histories
from kerf.replay.history.removal import Force


def force_of(store: Store, histories: Histories, claim: ClaimHistory) -> Force | None:
    """Return when and why the drain of a claim first deleted pods by force, or None: also where the record does not
    hold what the decision saw."""
    told = next((entry for entry in claim.events if isinstance(entry.payload, ev.PodForced)), None)
    if told is None:
        return None
    named = histories.pods.named
    if named is None:
        return _force(store, claim.name, told)
    return named.kept(("force", claim.name, told.position), lambda: _force(store, claim.name, told))


def _force(store: Store, claim: str, told: Entry) -> Force | None:
    answer = _payload(store, told.cause)
    position = int(answer.intent.partition(".")[0]) if isinstance(answer, EffectAnswered) else 0
    decision = _payload(store, position)
    if not isinstance(decision, Decision):
        return None
    try:
        state = load(store, decision.looked_at)
    except RecordShortened:
        return None
    found = state.facts.claims.get(claim)
    if found is None or found.deadline is None:
        return None
    grace, until = found.termination_grace_period, moment(found.deadline)
    code = ExplanationCode.DRAIN_CUT_SHORT
    if grace and found.deadline >= found.tainted + grace:
        code = ExplanationCode.GRACE_PERIOD_ENDS
    reason = Reason.of(code, grace=duration(grace or 0), until=until)
    return Force(position, decision.now, reason, {pod.pod: pod.reason for pod in draining_pods(found, state)})


def _payload(store: Store, position: int) -> object:
    return next((entry.payload for entry in store.scan(position - 1, position)), None) if position else None
