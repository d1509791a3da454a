"""What follows in observe mode: kerf decides beside a Karpenter that acts, and does nothing itself.

NodeClaims follow their objects, which Karpenter writes. A plan and a removal are recorded without intents and without
claim events; the pods of a plan stay pending for kerf until Karpenter has a node for them, and a move that stands its
second look is over with it ("observed"). Static NodePools are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kerf.engine.disruption import disruption_pass
from kerf.engine.disruption.drift import detection
from kerf.engine.disruption.forced import forced_disruption
from kerf.engine.disruption.moves import due_moves, execution
from kerf.engine.lifecycle import adoption as adopting
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, LAUNCHED, REGISTERED, STEADY, TAINTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DisruptResult, Move, MoveStepResult
from kerf.engine.runtime.recording import new_decision, record_claim_event
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.scheduling import provision as provisioning
from kerf.engine.state.nodeclaims.adoption import object_disruption_reason
from kerf.engine.state.nodeclaims.drift import DRIFT
from kerf.engine.state.state import Found, State

OBSERVED = "observed"
"""The step of a move (`MoveStepResult.step`) that would start: it is over with that, and its nodes rest for a while."""


def observe(draft: TurnDraft) -> None:
    """Adds all that follows at `draft.now`."""
    _follow(draft)
    _judge(draft)
    due = provisioning.due_at(draft.state)
    if due and draft.now >= due:
        result = provisioning.provision(draft.state, draft.now).result
        draft.add(new_decision(draft, "provision", provisioning.VERSION, result, ()))
        _follow(draft)
    _moves(draft)


def next_due(state: State) -> int:
    """The earliest time at which something follows although nothing is seen (ms since the epoch), 0 for never."""
    return soonest(
        provisioning.due_at(state), disruption_pass.due_at(state), due_moves.due_at(state), state.indexes.due.next()
    )  # fmt: skip


# ── claims follow their objects ─────────────────────────────────────────────────────────────────────────────────────


def _follow(draft: TurnDraft) -> None:
    facts = draft.state.facts
    for name in sorted({*facts.found, *facts.claims}):
        found, claim = facts.found.get(name), facts.claims.get(name)
        if found is None and claim is not None:
            draft.state.indexes.unchanged_objects.pop(name, None)
            for event in _ended(claim, draft.now):
                record_claim_event(draft, event, facts.position)
        elif found is not None and claim is None and _new(name, found.at, found.claim, draft.state):
            record_claim_event(draft, adopting.adopted(found.claim, draft.state), found.position)
        elif found is not None and claim is not None:
            _go_on(claim, found, draft)


def _go_on(claim: NodeClaim, found: Found, draft: TurnDraft) -> None:
    """One that is not on its way out goes on when its object says something else, or its Node is there."""
    seen = draft.state.indexes.unchanged_objects
    since = found.position, claim.state, found.claim.node in draft.state.facts.nodes
    if seen.get(claim.name) == since and not found.claim.deleting:
        return
    before = len(draft.entries)
    for event in _steps(claim, found.claim, draft):
        record_claim_event(draft, event, found.position)
    if len(draft.entries) == before:
        seen[claim.name] = since


def _new(name: str, since: int, found: NodeClaimObject, state: State) -> bool:
    """Whether it is launched and to be taken in now: what Karpenter makes while kerf still gathers pods must not be in
    the picture that kerf plans from."""
    facts = state.facts
    if not found.provider_id or f"nodeclaim/{name}" in facts.streams or not adopting.managed(found, state):
        return False
    if found.node and found.node not in facts.nodes:  # it would be taken for one whose Node was deleted
        return False
    return not facts.batch_opened or since < facts.batch_opened


def _steps(claim: NodeClaim, found: NodeClaimObject, draft: TurnDraft) -> Iterator[Struct]:
    """The claim is that of the fold: each event moves it on before the next is looked for."""
    true = {condition.type: condition for condition in found.conditions if condition.status == "True"}
    if claim.state == LAUNCHED and "Registered" in true and found.node in draft.state.facts.nodes:
        yield ev.Registered(claim.name, found.node, took=_took(true["Registered"], claim))
    if claim.state == REGISTERED and "Initialized" in true:
        yield ev.Initialized(claim.name, found.node, took=_took(true["Initialized"], claim))
    reason = object_disruption_reason(found, draft.now)
    if claim.state in STEADY and reason:
        yield ev.Tainted(claim.name, reason, age=draft.now - claim.created)
    elif claim.state == TAINTED and not reason:
        yield ev.Untainted(claim.name, claim.why)


def _took(condition: Condition, claim: NodeClaim) -> int:
    return max(0, condition.since - claim.created) if condition.since else 0


def _ended(claim: NodeClaim, now: int) -> Iterator[Struct]:
    """One that said why it goes and went, in one turn, has not vanished."""
    if claim.state in STEADY and claim.deletion:
        yield ev.Tainted(claim.name, claim.deletion, age=now - claim.created)
    if claim.state in GOING:
        yield ev.Terminated(claim.name, claim.why, *claim.lifetime(now))
    else:
        yield ev.InstanceVanished(claim.name, claim.instance, "gone", *claim.lifetime(now))


# ── what kerf would do ──────────────────────────────────────────────────────────────────────────────────────────────


def _judge(draft: TurnDraft) -> None:
    """Drift, and the removals that leave no choice: of claims about which something changed or whose time has come."""
    state = draft.state
    due = state.indexes.due.take(draft.now)
    names = sorted({*due, *state.indexes.touched})
    state.indexes.touched.clear()
    names = [name for name in names if name in state.facts.claims and state.facts.claims[name].state in STEADY]
    if not names:
        return
    drifted = detection.detect_drift(state, draft.now, names)
    for name, at in drifted.due.items():
        state.indexes.due.by(name, at)
    if drifted.verdicts:
        draft.add(new_decision(draft, DRIFT, detection.VERSION, DisruptResult(drifted.verdicts), ()))
    forced = forced_disruption.disrupt_by_force(state, draft.now, names)
    for name, at in forced.due.items():
        state.indexes.due.by(name, at)
    if forced.result.verdicts:
        draft.add(new_decision(draft, "disrupt", forced_disruption.VERSION, forced.result, ()))
    state.indexes.touched.clear()


def _moves(draft: TurnDraft) -> None:
    state, now = draft.state, draft.now
    for ref, found in due_moves.validate_due_moves(state, now, due_moves.most_validations(state)).items():
        step = execution.next_step(ref, found, state, now).result
        draft.add(new_decision(draft, "move", execution.VERSION, _observed(step, found), ()))
    due = disruption_pass.due_at(state)
    if due and now >= due:
        draft.add(new_decision(draft, "moves", disruption_pass.VERSION, disruption_pass.run_pass(state, now), ()))


def _observed(step: MoveStepResult, found: Move | object) -> MoveStepResult:
    """A move that would start."""
    if step.begun is None:
        return step
    return MoveStepResult(step.move, OBSERVED, step.reason, step.begun, step.verdicts)
