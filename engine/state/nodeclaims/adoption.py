"""The fold of what the record does not know yet: NodeClaim objects, and instances that the cloud lists (L-237, L-238).

An object stays in `found` until the engine has adopted it. An instance that belongs to no claim becomes an orphan once
it is old enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import STEADY
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import InstancesListed, TaggedInstance
from kerf.engine.state.provisioning_window import free_capacity_changed
from kerf.engine.state.state import Found, Orphan, State

MIN_STRAY_AGE = 30_000
"""L-238: an instance that is younger may have a claim that nobody has seen yet."""


def is_news(state: State, claim: NodeClaimObject) -> bool:
    """Whether an object says what the record does not know. Of its own claims only their deletion can be: all else of
    the object is kerf's own writing. In observe mode it is Karpenter's, and any change is news."""
    if state.facts.settings.observe:
        shown = state.facts.found.get(claim.name)
        return shown is None or shown.claim != claim
    known = state.facts.claims.get(claim.name)
    if known is not None:
        return bool(claim.deleting) and not known.deletion
    found = state.facts.found.get(claim.name)
    ended = f"nodeclaim/{claim.name}" in state.facts.streams
    return not ended and (found is None or found.claim != claim)


def object_disruption_reason(claim: NodeClaimObject, now: int) -> str:
    """Why a Karpenter takes it away, as far as its object says; "" while it stays. DisruptionReason (L-75) is set
    before the deletion; without it the deletion is an expiration or a user's."""
    for condition in claim.conditions:
        if (condition.type, condition.status) == ("DisruptionReason", "True"):
            return condition.reason.lower()
    if not claim.deleting:
        return ""
    expired = claim.expire_after is not None and now >= claim.created + claim.expire_after
    return (DisruptionReason.EXPIRED if expired else DisruptionReason.DELETED).value


def difference(state: State, listed: Sequence[TaggedInstance]) -> InstancesListed | None:
    """How a listing differs from the record; None if it says nothing new. The NodeClaim objects must have been seen
    before the listing was asked for: an instance whose claim nobody knows is ended."""
    there = {tagged.instance for tagged in listed}
    claims = [claim for _, claim in sorted(state.facts.claims.items()) if claim.registered and claim.state in STEADY]
    missing = tuple(claim.instance for claim in claims if claim.instance not in there)
    marked = tuple(claim.instance for claim in claims if claim.unlisted)
    strays = sorted((tagged for tagged in listed if _is_stray(state, tagged)), key=lambda tagged: tagged.instance)
    plain = {tagged.instance for tagged in listed if tagged.capacity_type == lbl.ON_DEMAND}
    demoted = tuple(
        claim.instance for claim in claims if claim.capacity_type == lbl.RESERVED and claim.instance in plain
    )
    if missing == marked and not strays and not demoted:
        return None
    return InstancesListed(missing, tuple(strays), demoted)


def _is_stray(state: State, listed: TaggedInstance) -> bool:
    """Whether nobody knows of it, and nobody is about to: a claim that waits for its launch finds it by its tag."""
    facts = state.facts
    if listed.instance in state.indexes.claim_by_instance or listed.instance in facts.orphans:
        return False
    claim = facts.claims.get(listed.claim)
    expected = claim is not None and not claim.instance
    searched = listed.claim in facts.searches or listed.claim in facts.found
    return not (expected or searched or _of_found(state, listed.instance))


def _of_found(state: State, instance: str) -> bool:
    return any(found.claim.provider_id.endswith(f"/{instance}") for found in state.facts.found.values())


def claim_object_seen(state: State, claim: NodeClaimObject, entry: Entry) -> None:
    if not is_news(state, claim):
        return
    known = state.facts.claims.get(claim.name)
    if state.facts.tells_history:
        state.indexes.touched[claim.name] = entry.position
    elif known is not None and state.facts.settings.observe:
        known.deletion = object_disruption_reason(claim, entry.at)
    elif known is not None:
        known.deletion = "unknown"
        state.indexes.touched[claim.name] = entry.position
        return
    before = state.facts.found.get(claim.name)
    since = before.at if before is not None else entry.at
    state.facts.found[claim.name] = Found(claim, since, entry.position)


def claim_object_gone(state: State, name: str, entry: Entry) -> None:
    """Somebody took the object away, finalizer and all: its node goes as if the deletion had waited for it."""
    state.facts.found.pop(name, None)
    known = state.facts.claims.get(name)
    if known is not None and state.facts.tells_history:
        state.indexes.touched[name] = entry.position
    elif known is not None and not known.deletion and not state.facts.settings.observe:
        known.deletion = "unknown"
        state.indexes.touched[name] = entry.position


def instances_listed(state: State, listed: InstancesListed, entry: Entry) -> None:
    facts = state.facts
    missing = frozenset(listed.missing)
    for claim in facts.claims.values():
        unlisted = bool(claim.instance) and claim.instance in missing
        if unlisted != bool(claim.unlisted):
            claim.unlisted = entry.at if unlisted else 0
            state.indexes.touched[claim.name] = entry.position
    for name in filter(None, map(state.indexes.claim_by_instance.get, listed.demoted)):
        demote(state, facts.claims[name], entry)
    for stray in listed.strays:
        if _is_stray(state, stray):
            facts.orphans[stray.instance] = Orphan(stray.claim, retry_at=stray.launched + MIN_STRAY_AGE, listed=True)


def demote(state: State, claim: NodeClaim, entry: Entry) -> None:
    """Make a claim on-demand: its reservation is over, and the instance runs on (L-250)."""
    left = {key: value for key, value in claim.labels.items() if key not in lbl.OF_RESERVATIONS}
    claim.capacity_type = lbl.ON_DEMAND
    claim.labels = {**left, lbl.CAPACITY_TYPE: lbl.ON_DEMAND}
    state.indexes.touched[claim.name] = entry.position
    free_capacity_changed(state, entry.at)
