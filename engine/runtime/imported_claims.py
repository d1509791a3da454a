"""What follows in an imported record: NodeClaims follow the objects that its source tells of (F-91, F-92).

Nothing is decided here, and nothing is made up. A claim that is first met on its way existed before the window and is
adopted. A removal that nobody explains has the reason "unknown". A step that shows only in later ones (its condition
has no time) took a time that is not known, which is written as 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.lifecycle import adoption as adopting
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.launch_reasons import launch_failure_kind
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, LAUNCHED, REGISTERED, REQUESTED, STEADY
from kerf.engine.record import claim_events as ev
from kerf.engine.runtime.recording import record_claim_event
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state.nodeclaims.adoption import object_disruption_reason
from kerf.engine.state.state import Found


def follow(draft: TurnDraft) -> None:
    """Adds the claim events that follow from the objects of this turn, in the order of their names."""
    facts, touched = draft.state.facts, draft.state.indexes.touched
    for name in sorted(touched):
        found = facts.found.get(name)
        if found is None and name in facts.claims:
            for event in _ended(facts.claims[name], draft):
                record_claim_event(draft, event, facts.position)
        elif found is not None:
            _go_on(found, draft)
    touched.clear()


def _go_on(found: Found, draft: TurnDraft) -> None:
    facts, claim_object = draft.state.facts, found.claim
    if claim_object.name not in facts.claims:
        if f"nodeclaim/{claim_object.name}" in facts.streams:
            return  # it is over, and its object is still there
        record_claim_event(draft, _begun(claim_object, draft), found.position)
    claim = facts.claims.get(claim_object.name)
    if claim is not None:
        for event in _steps(claim, claim_object, draft):
            record_claim_event(draft, event, found.position)


def _begun(claim: NodeClaimObject, draft: TurnDraft) -> Struct:
    imported = draft.state.facts.imported
    before = imported is not None and claim.created < imported.since
    if before or claim.provider_id or claim.node or claim.deleting:
        return adopting.adopted(replace(claim, deleting=0), draft.state)  # that it goes is told next
    types = next((r.values for r in claim.requirements if r.key == lbl.INSTANCE_TYPE), ())
    return adopting.requested_of(claim, types, price=0.0)


def _steps(claim: NodeClaim, found: NodeClaimObject, draft: TurnDraft) -> Iterator[Struct]:
    """The claim is that of the fold: each event moves it on before the next is looked for."""
    age, since = _age(claim, draft), {c.type: c.since for c in found.conditions if c.status == "True"}
    registered, initialized = "Registered" in since, "Initialized" in since
    if claim.state == REQUESTED and (failed := _launch_failure(found)) is not None:
        kind = launch_failure_kind(failed.message)
        yield ev.LaunchFailed(claim.name, kind=kind, code=failed.reason, message=failed.message)
        return
    if claim.state == REQUESTED and ((found.provider_id and lbl.INSTANCE_TYPE in found.labels) or registered):
        yield _launched(claim, found, age if since.get("Launched") else 0)
    if claim.state == LAUNCHED and registered:
        yield ev.Registered(claim.name, found.node, took=age if since["Registered"] else 0)
    if claim.state == REGISTERED and initialized:
        yield ev.Initialized(claim.name, found.node, took=age if since["Initialized"] else 0)
    if claim.state in STEADY and found.deleting:
        yield _tainted(
            claim, age, adopting.deadline(found), object_disruption_reason(replace(found, deleting=0), draft.now)
        )


def _launch_failure(found: NodeClaimObject) -> Condition | None:
    return next((c for c in found.conditions if (c.type, c.status) == ("Launched", "False")), None)


def _launched(claim: NodeClaim, found: NodeClaimObject, took: int) -> ev.Launched:
    return ev.Launched(
        claim=claim.name,
        instance=found.provider_id.rpartition("/")[2],
        provider_id=found.provider_id,
        instance_type=found.labels.get(lbl.INSTANCE_TYPE, ""),
        zone=found.labels.get(lbl.ZONE, ""),
        capacity_type=found.labels.get(lbl.CAPACITY_TYPE, ""),
        price=0.0,
        capacity=found.capacity,
        allocatable=found.allocatable,
        labels=found.labels,
        took=took,
    )


def _tainted(claim: NodeClaim, age: int, deadline: int | None = None, shown: str = "") -> ev.Tainted:
    """Why it goes, the best witness first: the cloud's message, the controller's own word, what its object says
    (`shown`), whoever deleted it (F-147)."""
    if claim.interruption:
        why, detail = DisruptionReason.INTERRUPTED.value, claim.interruption
    elif claim.announced or shown:
        why, detail = claim.announced or shown, ""
    elif claim.deletion:
        why, detail = DisruptionReason.DELETED.value, claim.deletion
    else:
        why, detail = DisruptionReason.UNKNOWN.value, ""
    return ev.Tainted(claim.name, why, deadline=deadline, detail=detail, age=age)


def _age(claim: NodeClaim, draft: TurnDraft) -> int:
    """The time since the claim was requested; 0 where that was before the window and nobody tells when."""
    imported = draft.state.facts.imported
    known = claim.requested or (imported is not None and claim.created < imported.since)
    return draft.now - claim.created if known else 0


def _ended(claim: NodeClaim, draft: TurnDraft) -> Iterator[Struct]:
    age = _age(claim, draft)
    if claim.state == REQUESTED:
        yield ev.Cancelled(claim.name, claim.deletion)
        return
    if claim.state in STEADY:
        yield _tainted(claim, age)
    if claim.state in GOING:
        yield ev.Terminated(claim.name, claim.why, *(claim.lifetime(draft.now) if age else (0, 0.0)))
