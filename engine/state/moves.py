"""The fold of moves: which are proposed or started, which claims are held back, and when the next pass is due.

A move that has started is over when each of its candidates is being drained, stays after all, or has to go for a reason
that leaves no choice. Its replacements are NodeClaims like all others by then.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import TAINTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Move, MoveStepResult, ProposedMovesResult, Verdict
from kerf.engine.record.entries import Entry
from kerf.engine.state.objects.nodes import index_repair
from kerf.engine.state.pods.targets import expect, expect_no_more
from kerf.engine.state.provisioning_window import nomination_period, note_disruption_change
from kerf.engine.state.state import Hold, State, Underway

STARTED, WITHDRAWN, ABANDONED = "started", "withdrawn", "abandoned"
"""Steps of a move (`MoveStepResult.step`)."""
WITHDRAWN_WITHOUT_HOLD = (DisruptionCode.CHURN, DisruptionCode.BUDGET)
"""Moves withdrawn for these came to nothing because of a change: their nodes may be tried again with the next pass."""
MIN_HOLD, MAX_HOLD = 60_000, 600_000
"""D-66's proposal: a minute after a failure, then twice as long each time, up to ten."""

_LEAVES_MOVE = (ev.DrainStarted, ev.ReasonRaised, ev.Untainted, ev.Terminated, ev.InstanceVanished)


def members(move: Move) -> tuple[str, ...]:
    """The claims that a move is about: its candidates and its replacements."""
    return (*move.claims, *(replacement.name for replacement in move.replacements))


def index_moves(state: State) -> None:
    """Which move each claim is in that one has started for. What replaced another node may itself have to go before
    that move is over: the later one counts."""
    started = (ref for ref, move in state.facts.moves.items() if move.started)
    state.indexes.move_of = {}
    for ref in sorted(started, key=proposal_order):
        state.indexes.move_of.update(dict.fromkeys(members(state.facts.moves[ref].move), ref))


def proposal_order(ref: str) -> tuple[int, int]:
    """The position of a move's proposal, and its place there: moves in the order in which they were proposed."""
    position, _, index = ref.partition(".")
    return int(position), int(index)


def pass_decided(state: State, result: ProposedMovesResult, entry: Entry) -> None:
    """A disruption pass: what had changed is seen."""
    facts = state.facts
    for claim, hold in facts.holds.items():
        if facts.moves_changed > hold.since and not hold.again:
            facts.holds[claim] = replace(hold, again=True)
    facts.moves_changed, facts.moves_looked, facts.moves_look_at = 0, entry.at, result.look_at
    for index, move in enumerate(result.proposed):
        facts.moves[f"{entry.position}.{index}"] = Underway(move, entry.at)
    keep_verdicts(state, result.verdicts, entry)


def keep_verdicts(state: State, verdicts: Iterable[Verdict], entry: Entry) -> None:
    for verdict in verdicts:
        claim = state.facts.claims.get(verdict.claim)
        if claim is not None and verdict.action == "note":
            claim.repair, claim.repair_told = verdict.reason.code, entry.at
            index_repair(state, claim)
        elif claim is not None:
            claim.verdict = verdict.reason.code


def step_decided(state: State, result: MoveStepResult, entry: Entry) -> None:
    """A move has started, was withdrawn or was abandoned."""
    facts = state.facts
    before = facts.moves[result.move]
    if result.step == STARTED and result.begun is not None:
        facts.moves[result.move] = Underway(result.begun, entry.at, started=True)
        index_moves(state)
        _expect_moved_pods(state, result.begun, entry)
        for name in result.begun.claims:
            if name in facts.claims:
                facts.claims[name].turns = result.begun.turns
    else:
        _end(state, result.move)
        changed = bool(facts.moves_changed) or facts.moves_looked > before.at  # a pass leaves no change unseen
        if result.reason.code not in WITHDRAWN_WITHOUT_HOLD and not (changed and result.step == WITHDRAWN):
            for claim in before.move.claims:
                _hold(state, claim, entry.at, again=result.step == ABANDONED)
        note_disruption_change(facts, entry.at)  # nobody has looked at these nodes since they were proposed
    if result.step == ABANDONED:
        _stay(state, before.move)
    keep_verdicts(state, result.verdicts, entry)


def _expect_moved_pods(state: State, move: Move, entry: Entry) -> None:
    """The pods that move are expected on other nodes (D-115, step 8)."""
    facts = state.facts
    until = entry.at + nomination_period(facts.settings)
    for placement in move.placements:
        expect(state, placement.claim or placement.node, placement.pods)
        claim = facts.claims.get(placement.claim)
        if claim is not None:
            claim.nominated_until = max(claim.nominated_until, until)
    for planned in move.replacements:
        expect(state, planned.name, planned.pods)


def _stay(state: State, move: Move) -> None:
    """The pods of these nodes do not move: nobody waits for them any more."""
    for name in move.claims:
        claim = state.facts.claims.get(name)
        for uid in state.indexes.pods_by_node.get(claim.node if claim is not None else "", {}):
            expect_no_more(state, uid)


def _hold(state: State, claim: str, at: int, *, again: bool) -> None:
    holds = state.facts.holds
    if claim in state.facts.claims:
        before = holds.get(claim)
        times = before.times + 1 if before is not None and at < before.until + MAX_HOLD else 1
        holds[claim] = Hold(at, at + min(MAX_HOLD, MIN_HOLD << min(times - 1, 10)), times, again)


def _end(state: State, move: str) -> None:
    if state.facts.moves.pop(move).started:
        index_moves(state)


def claim_event_happened(state: State, event: Struct, claim: str, entry: Entry) -> None:
    """A claim event: moves that wait for it go on, and candidates on their way out are no longer theirs."""
    facts, indexes = state.facts, state.indexes
    if isinstance(event, ev.Terminated | ev.InstanceVanished):
        facts.holds.pop(claim, None)
    move = indexes.move_of.get(claim)
    if move is None:
        return
    waiting = facts.moves[move].move.claims
    if claim not in waiting:  # a replacement: those that wait for it look again
        indexes.touched.update((name, entry.position) for name in waiting if name in facts.claims)
    elif isinstance(event, _LEAVES_MOVE):
        if any(facts.claims[name].state == TAINTED for name in waiting if name != claim and name in facts.claims):
            return
        _end(state, move)
        note_disruption_change(facts, entry.at)


def move_of(state: State, claim: NodeClaim) -> Move | None:
    """The started move that takes this claim away. A reason that leaves no choice ends it for the claim."""
    found = state.facts.moves.get(state.indexes.move_of.get(claim.name, ""))
    return found.move if found is not None and goes_by(claim, found.move) else None


def goes_by(claim: NodeClaim, move: Move) -> bool:
    """Whether the claim waits for its drain because of this move."""
    return claim.name in move.claims and claim.state == TAINTED and claim.why == move.why


def replacements_awaited(state: State, move: Move) -> list[str]:
    """The replacements that have to be in service before the move's drains may start (D-116)."""
    claims = state.facts.claims
    return [new.name for new in move.replacements if new.name not in claims or not claims[new.name].initialized]
