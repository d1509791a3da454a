"""The fold of decisions: intents stay open until they are answered; conclusions are kept in the state."""

from __future__ import annotations

from collections import Counter

from kerf.engine.model.content_digest import content
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    LifecycleResult,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
)
from kerf.engine.record.entries import Entry
from kerf.engine.state import moves
from kerf.engine.state.nodeclaims.consistency import CONSISTENCY, consistency_decided
from kerf.engine.state.nodeclaims.drift import DRIFT, drift_decided
from kerf.engine.state.nodeclaims.events import intent_made, look_at_interrupted
from kerf.engine.state.nodeclaims.unavailable import forget_lapsed, lapses
from kerf.engine.state.objects.capacity_buffers import buffered
from kerf.engine.state.objects.static_nodepools import static_decided
from kerf.engine.state.pods import bursts
from kerf.engine.state.pods.targets import expect
from kerf.engine.state.provisioning_window import in_service, nomination_period
from kerf.engine.state.state import State

MIN_BINDING_PAUSE = 10_000
MAX_BINDING_PAUSE = 300_000


def decision_made(state: State, decision: Decision, entry: Entry) -> None:
    for index, intent in enumerate(decision.intents):
        intent_made(state, f"{entry.position}.{index}", intent, entry.at)
    result = decision.result
    if isinstance(result, ProvisionResult):
        _planned(state, result, entry)
    elif isinstance(result, StaticResult):
        static_decided(state, result, entry)
    elif isinstance(result, LifecycleResult) and decision.decider == CONSISTENCY:
        consistency_decided(state, result, entry)
    elif isinstance(result, DisruptResult) and decision.decider == DRIFT:
        drift_decided(state, result, entry)
    elif isinstance(result, DisruptResult):
        moves.keep_verdicts(state, result.verdicts, entry)
    elif isinstance(result, ProposedMovesResult):
        moves.pass_decided(state, result, entry)
    elif isinstance(result, MoveStepResult):
        moves.step_decided(state, result, entry)


def _planned(state: State, result: ProvisionResult, entry: Entry) -> None:
    """Closes the window and notes which pods wait for which claims (S-169, S-171, D-8).

    A pass that goes on with the rest of the one before leaves the window open: it does not look at the pods that opened
    it.
    """
    facts = state.facts
    goes_on = bool(facts.rest)
    if not goes_on:
        facts.batch_opened = facts.batch_last = 0
    facts.rest, facts.rest_at = result.truncated, entry.at + 1 if result.truncated else 0
    state.indexes.rest = frozenset(result.truncated)
    forget_lapsed(facts, entry.at)
    if not result.repeats:
        _expect_planned_pods(state, result, entry, goes_on)
        facts.plan, facts.plan_digest, facts.plan_at = entry.position, content(result)[0], entry.at
        facts.unplaced = bool(result.unplaced) or (goes_on and facts.unplaced)
    if not goes_on:
        facts.arrived = {}
    bursts.planned(state)
    facts.retry_at = _plan_again_at(state, result, entry.at)


def _plan_again_at(state: State, result: ProvisionResult, at: int) -> int:
    """When pods that still wait are planned for again although nothing changed (ms since the epoch, 0 for never).

    The earliest of three times: when an offering counts as available again; when a pod may get another node than the
    one that was launched for it in vain; and ten seconds, then pauses that double, after the scheduler has not bound a
    pod to its planned node in service (S-57).
    """
    facts = state.facts
    times = [lapse for lapse in lapses(facts) if lapse > at] if facts.unplaced else []
    if any(uid in state.indexes.pending and in_service(facts, target) for uid, target in facts.targets.items()):
        times.append(at + min(max(MIN_BINDING_PAUSE, at - facts.plan_at), MAX_BINDING_PAUSE))
    if result.retry_at:
        times.append(result.retry_at)
    return min(times, default=0)


def _expect_planned_pods(state: State, result: ProvisionResult, entry: Entry, goes_on: bool) -> None:
    facts, indexes = state.facts, state.indexes
    before = facts.buffered
    indexes.touched.update(dict.fromkeys(indexes.waiting_for, entry.position))  # perhaps no pod waits for them any more
    facts.targets = {}
    indexes.waiting_for = {}
    until = entry.at + nomination_period(facts.settings)
    facts.buffered = buffered(facts, result)
    if goes_on:  # the pods of the pass before are where it put them
        facts.buffered = dict(sorted((Counter(before) + Counter(facts.buffered)).items()))
    for placement in result.placements:
        expect(state, placement.claim or placement.node, placement.pods)
        claim = facts.claims.get(placement.claim)
        if claim is not None and any(uid in facts.pods for uid in placement.pods):  # S-171: real ones
            claim.nominated_until = until
            indexes.touched[claim.name] = entry.position
    for planned in result.claims:
        expect(state, planned.name, planned.pods)
    look_at_interrupted(state, entry)
