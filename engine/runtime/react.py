"""What follows from what was seen: claim events and decisions, until nothing more follows at this instant.

Live and in replay the same function runs over the same state, so replay can tell whether the engine of today would
have done what stands in the record.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.disruption import disruption_pass
from kerf.engine.disruption.drift import detection
from kerf.engine.disruption.forced import forced_disruption
from kerf.engine.disruption.moves import due_moves, execution
from kerf.engine.errors import REPORT, KerfError
from kerf.engine.lifecycle import adoption as adopting
from kerf.engine.lifecycle import consistency, static_nodepools
from kerf.engine.lifecycle import launch_to_initialized as advancing
from kerf.engine.lifecycle.drain import draining, nodes_without_claim
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import Step, soonest
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.claim_events import Requested
from kerf.engine.record.decisions import (
    DeleteNode,
    DisruptResult,
    FindInstance,
    Intent,
    LifecycleResult,
    TerminateInstance,
)
from kerf.engine.runtime import imported_claims as importing
from kerf.engine.runtime import observe_mode as observing
from kerf.engine.runtime.recording import new_decision, record_claim_event
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.scheduling import provision as provisioning
from kerf.engine.state.nodeclaims.consistency import CONSISTENCY
from kerf.engine.state.nodeclaims.drift import DRIFT
from kerf.engine.state.nodeclaims.events import UNTIL_ANSWERED, nodes_of_instance
from kerf.engine.state.state import State

MAX_ROUNDS = 100
"""Real chains of consequences are much shorter. A longer one means that two deciders undo each other's work."""


class UnendingTurn(KerfError):
    code = "KERF702"


def react(draft: TurnDraft) -> None:
    """Adds all that follows at `draft.now`. Raises UnendingTurn (KERF702) when it does not come to an end."""
    if draft.state.facts.tells_history:
        importing.follow(draft)
        return
    if draft.state.facts.settings.observe:
        observing.observe(draft)
        return
    validations = due_moves.most_validations(draft.state)
    for _ in range(MAX_ROUNDS):
        before = len(draft.entries)
        _adopt(draft)
        _claims(draft)
        _nodes_without_claim(draft)
        _orphaned_instances(draft)
        _static(draft)
        due = provisioning.due_at(draft.state)
        if due and draft.now >= due:
            _provision(draft)
        validations -= _moves(draft, validations)
        if len(draft.entries) == before:
            return
    where = f"position {draft.state.facts.position}"
    raise UnendingTurn("consequences do not come to an end", where=where, hint=REPORT)


def next_due(state: State) -> int:
    """The earliest time at which something follows although nothing is seen (ms since the epoch), 0 for never."""
    if state.facts.tells_history:
        return 0
    if state.facts.settings.observe:
        return observing.next_due(state)
    orphans = (o.retry_at or 1 for o in state.facts.orphans.values() if o.retry_at != UNTIL_ANSWERED)
    searches = (s.at for s in state.facts.searches.values() if s.at != UNTIL_ANSWERED)
    static = (pool.retry_at for pool in state.facts.static.values())
    deciders = (decider.due_at(state) for decider in (provisioning, disruption_pass, due_moves, adopting))
    return soonest(*deciders, state.indexes.due.next(), *orphans, *searches, *static)


# ── what is found ──────────────────────────────────────────────────────────────────────────────────────────────────


def _adopt(draft: TurnDraft) -> None:
    """Adopt NodeClaim objects that have no claim in the record, in the order of their names."""
    state = draft.state
    for name in sorted(state.facts.found):
        found = state.facts.found[name]
        step, cause = adopting.adopt(found, state, draft.now), found.position
        if step.intents:
            result = LifecycleResult(name, step.reason)
            cause = draft.add(
                new_decision(draft, "adopt", adopting.VERSION, result, step.intents), cause=cause
            ).position
        for event in step.events:
            record_claim_event(draft, replace(event, decision=cause) if isinstance(event, Requested) else event, cause)


# ── claims ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _claims(draft: TurnDraft) -> None:
    """Every claim about which something changed, or whose time has come, in the order of their names.

    A claim whose time had come may have been looked at before, in a turn that left no entry. Replay does not know of
    that turn, and takes the claim for due still. So where something changes about a due claim before its turn comes,
    it is looked at for that, in the next round (ADR 3).
    """
    indexes = draft.state.indexes
    for name in indexes.due.take(draft.now):
        indexes.touched.setdefault(name, 0)
    for _ in range(MAX_ROUNDS):
        touched = dict(indexes.touched)
        indexes.touched.clear()
        names = sorted(n for n in touched if n in draft.state.facts.claims)
        if not names:
            return
        for name in names:
            indexes.due.drop(name)
        _drift(draft, names)
        _disrupt(draft, names)
        for name in names:
            claim = draft.state.facts.claims.get(name)
            is_due_alone = not touched[name]
            if claim is not None and not (is_due_alone and name in indexes.touched):
                _step(draft, claim, touched[name])


def _drift(draft: TurnDraft, names: list[str]) -> None:
    state = draft.state
    outcome = detection.detect_drift(state, draft.now, names)
    for name, due in outcome.due.items():
        state.indexes.due.by(name, due)
    if outcome.verdicts:
        draft.add(new_decision(draft, DRIFT, detection.VERSION, DisruptResult(outcome.verdicts), ()))


def _disrupt(draft: TurnDraft, names: list[str]) -> None:
    state = draft.state
    outcome = forced_disruption.disrupt_by_force(state, draft.now, names)
    for name, due in outcome.due.items():
        state.indexes.due.by(name, due)
    if not outcome.result.verdicts and not outcome.events:
        return
    made = draft.add(new_decision(draft, "disrupt", forced_disruption.VERSION, outcome.result, outcome.intents))
    for event in outcome.events:
        record_claim_event(draft, event, made.position)


def _step(draft: TurnDraft, claim: NodeClaim, cause: int) -> None:
    state, now = draft.state, draft.now
    decider, version = ("drain", draining.VERSION) if claim.state in GOING else ("advance", advancing.VERSION)
    step: Step = (draining.drain if claim.state in GOING else advancing.advance)(claim, state, now)
    if step.due:
        state.indexes.due.by(claim.name, step.due)
    if step.intents:
        result = LifecycleResult(claim.name, step.reason)
        cause = draft.add(new_decision(draft, decider, version, result, step.intents), cause=cause).position
    for event in step.events:
        record_claim_event(draft, event, cause)
    _check(draft, claim)


def _check(draft: TurnDraft, claim: NodeClaim) -> None:
    reason = consistency.check(claim, draft.state)
    if reason is not None:
        result = LifecycleResult(claim.name, reason)
        draft.add(new_decision(draft, CONSISTENCY, consistency.VERSION, result, ()))


def _nodes_without_claim(draft: TurnDraft) -> None:
    """Nodes on their way out that no claim looks after (W-80)."""
    for node in nodes_without_claim.deleted_nodes_without_claim(draft.state):
        step = nodes_without_claim.drain_without_claim(node, draft.state, draft.now)
        if step.due:
            draft.state.indexes.due.by(node.name, step.due)
        if step.intents:
            decider, version = nodes_without_claim.DECIDER, nodes_without_claim.VERSION
            result = LifecycleResult("", step.reason)
            draft.add(new_decision(draft, decider, version, result, step.intents))


def _orphaned_instances(draft: TurnDraft) -> None:
    """Claims that are over may have left an instance: one that turned up late is ended, one that nobody was told of is
    looked for."""
    searches = draft.state.facts.searches
    for claim in sorted(c for c, search in searches.items() if draft.now >= search.at):
        result = LifecycleResult(claim, Reason.of(LifecycleCode.SEARCH_ORPHAN))
        find = FindInstance(claim, searches[claim].order)
        draft.add(new_decision(draft, "drain", draining.VERSION, result, (find,)))
    ready = sorted(i for i, orphan in draft.state.facts.orphans.items() if draft.now >= orphan.retry_at)
    for instance in ready:
        orphan = draft.state.facts.orphans[instance]
        reason = Reason.of(LifecycleCode.TERMINATE_ORPHAN, instance=instance)
        if orphan.listed:
            reason = Reason.of(LifecycleCode.TERMINATE_UNCLAIMED, instance=instance)
        result = LifecycleResult(orphan.claim, reason)
        order = TerminateInstance(orphan.claim, instance)
        nodes = nodes_of_instance(draft.state, instance) if orphan.listed else []
        intents: tuple[Intent, ...] = (order, *(DeleteNode(orphan.claim, node) for node in nodes))
        draft.add(new_decision(draft, "drain", draining.VERSION, result, intents))


# ── static NodePools ────────────────────────────────────────────────────────────────────────────────────────────────


def _static(draft: TurnDraft) -> None:
    """Decide on every static pool about which something changed, or whose pause is over, by name (D-160)."""
    state = draft.state
    due = [name for name, pool in state.facts.static.items() if 0 < pool.retry_at <= draft.now]
    names = sorted({*state.indexes.static, *due})
    state.indexes.static.clear()
    for name in names if state.facts.settings.static_capacity else ():
        pool = state.facts.pools[name]
        outcome = static_nodepools.keep_size(pool, state, draft.now)
        if outcome.result is None:
            continue
        made = draft.add(new_decision(draft, "static", static_nodepools.VERSION, outcome.result, outcome.intents))
        for planned in outcome.result.claims:
            record_claim_event(draft, provisioning.requested(planned, pool, made.position), made.position)
        for event in outcome.events:
            record_claim_event(draft, event, made.position)


# ── provisioning ───────────────────────────────────────────────────────────────────────────────────────────────────


def _provision(draft: TurnDraft) -> None:
    state = draft.state
    outcome = provisioning.provision(state, draft.now)
    made = draft.add(new_decision(draft, "provision", provisioning.VERSION, outcome.result, outcome.intents))
    for planned in outcome.result.claims:
        pool = state.facts.pools[planned.node_pool]
        record_claim_event(draft, provisioning.requested(planned, pool, made.position), made.position)


# ── moves ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _moves(draft: TurnDraft, most: int) -> int:
    """Moves that fail are given up, those whose time has come start or are withdrawn; then new ones are looked for.
    Returns how many were validated, `most` at the utmost."""
    state, now = draft.state, draft.now
    for ref, reason in list(execution.failed_moves(state, now)):
        _next_step(draft, execution.abandon(ref, reason, state, now))
    validated = due_moves.validate_due_moves(state, now, most)
    for ref, found in validated.items():
        _next_step(draft, execution.next_step(ref, found, state, now))
    due = disruption_pass.due_at(state)
    if due and now >= due:
        draft.add(new_decision(draft, "moves", disruption_pass.VERSION, disruption_pass.run_pass(state, now), ()))
    return len(validated)


def _next_step(draft: TurnDraft, step: execution.NextStep) -> None:
    made = draft.add(new_decision(draft, "move", execution.VERSION, step.result, step.intents)).position
    for planned in step.requested:
        pool = draft.state.facts.pools[planned.node_pool]
        record_claim_event(draft, provisioning.requested(planned, pool, made), made)
    for event in step.events:
        record_claim_event(draft, event, made)
