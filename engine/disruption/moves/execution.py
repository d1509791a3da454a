"""Carrying out moves: a validated move starts, another is withdrawn, and one whose replacement does not come is
abandoned (D-115…D-118)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.disruption.moves.due_moves import replacement_time_limit
from kerf.engine.lifecycle.drain.last_look import called_off_because
from kerf.engine.lifecycle.step import may_ask
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim import effect_keys
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import REQUESTED, STEADY
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Intent, Move, MoveStepResult, PlannedClaim, TaintNode, UntaintNode, Verdict
from kerf.engine.scheduling.launchable.withheld import withheld_among
from kerf.engine.scheduling.problem.problem import PoolInput, Problem
from kerf.engine.scheduling.provision import claim_names, launch_orders
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.moves import ABANDONED, STARTED, WITHDRAWN, goes_by, replacements_awaited
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State

VERSION = 24


class NextStep(Struct, frozen=True):
    """A move's next step.

    `requested` are its replacements. The caller makes their `Requested` events, which name the decision's position; the
    `events` follow these.
    """

    result: MoveStepResult
    intents: tuple[Intent, ...] = ()
    requested: tuple[PlannedClaim, ...] = ()
    events: tuple[Struct, ...] = ()


def next_step(ref: str, validated: Move | Reason, state: State, now: int) -> NextStep:
    """Starts a validated move; withdraws one that came to a reason against it."""
    if isinstance(validated, Reason):
        return _withdrawn(ref, state.facts.moves[ref].move, validated)
    return start(ref, validated, state, now)


def _withdrawn(ref: str, move: Move, reason: Reason) -> NextStep:
    return NextStep(MoveStepResult(ref, WITHDRAWN, reason, verdicts=tuple(_keep_verdicts(move, reason))))


def start(ref: str, move: Move, state: State, now: int) -> NextStep:
    """Taints all candidates and launches all replacements, in one decision (D-115)."""
    claims = [state.facts.claims[name] for name in move.claims if name in state.facts.claims]
    if len(claims) < len(move.claims) or any(claim.state not in STEADY for claim in claims):
        return _withdrawn(ref, move, Reason.of(DisruptionCode.CHURN, claims=list(move.claims)))
    if any(_goes(place.claim, state) for place in move.placements if place.claim):
        return _withdrawn(ref, move, Reason.of(DisruptionCode.SCHEDULING, why="a-node-goes"))
    names = claim_names([replacement.node_pool for replacement in move.replacements], state)
    news = tuple(replace(replacement, name=name) for replacement, name in zip(move.replacements, names, strict=True))
    problem = cluster_of(state, now).base if news else Problem((), {}, (), {})
    pools = {pool_input.pool.name: pool_input for pool_input in problem.pools}
    if not {new.node_pool for new in news} <= pools.keys():  # one was taken away since
        return _withdrawn(ref, move, Reason.of(DisruptionCode.SCHEDULING, why="no-nodepool"))
    if any(_is_withheld(new, pools[new.node_pool]) for new in news):
        return _withdrawn(ref, move, Reason.of(DisruptionCode.SCHEDULING, why=SchedulingCode.LABEL_NOT_GIVEN.value))
    orders = launch_orders(news, problem)
    if not all(order.offers for order in orders):
        return _withdrawn(ref, move, Reason.of(DisruptionCode.SCHEDULING, why="no-offering"))
    begun = replace(move, replacements=news)
    verdicts = tuple(_removal_verdict(claim, move, now) for claim in claims)
    return NextStep(
        result=MoveStepResult(ref, STARTED, Reason(move.why), begun, verdicts),
        intents=(*orders, *(intent for claim in claims for intent in _taint(claim, state, now))),
        requested=news,
        events=tuple(_tainted(claim, move, now) for claim in claims),
    )


def _goes(claim: str, state: State) -> bool:
    """Whether a node that pods are to go to is gone, or going: of a move for drift nothing else asks that again, and it
    may have waited for its budget (D-108)."""
    there = state.facts.claims.get(claim)
    return there is None or there.state not in (REQUESTED, *STEADY)


def _is_withheld(new: PlannedClaim, given: PoolInput) -> bool:
    """Whether launches did not give what it asks for meanwhile (D-125). A move for drift may have waited for its
    budget, and gets no second look."""
    return bool(withheld_among(Requirements.of_specs(new.requirements), given.withheld))


def _removal_verdict(claim: NodeClaim, move: Move, now: int) -> Verdict:
    params: dict[str, str | int | float | list[str]] = {}
    if move.why == DisruptionReason.EMPTY:
        params["quiet"] = now - (claim.last_pod_event or claim.initialized)
    return Verdict(claim.name, move.why, "remove", Reason(move.why, params))


def _tainted(claim: NodeClaim, move: Move, now: int) -> ev.Tainted:
    """The taint's event. A claim that waits for its replacement has no deadline yet: that is set when its drain
    starts."""
    grace = claim.termination_grace_period
    deadline = None if grace is None or move.replacements else now + grace  # L-189
    return ev.Tainted(claim.name, move.why, deadline, age=now - claim.created)


def _taint(claim: NodeClaim, state: State, now: int) -> list[Intent]:
    node = node_of(claim, state)
    if node is None or not may_ask(claim.effect(effect_keys.TAINT), now):
        return []
    return [TaintNode(claim.name, node.name)]


def failed_moves(state: State, now: int) -> Iterator[tuple[str, Reason]]:
    """Moves that have started and cannot come to their end: a replacement is lost or late (D-116, D-117), or pods may
    not leave any more."""
    moves = state.facts.moves
    for ref in sorted(ref for ref, underway in moves.items() if underway.started and underway.move.replacements):
        underway = moves[ref]
        lost = [new.name for new in underway.move.replacements if new.name not in state.facts.claims]
        if lost:
            yield ref, Reason.of(DisruptionCode.REPLACEMENT_LOST, claims=lost)
        elif now - underway.at > replacement_time_limit(state) and replacements_awaited(state, underway.move):
            yield ref, Reason.of(DisruptionCode.REPLACEMENT_LATE, waited=now - underway.at)
        elif (kept := called_off_because(underway.move, state, now)) is not None:
            yield ref, kept


def abandon(ref: str, reason: Reason, state: State, now: int) -> NextStep:
    """Takes the taints off again; the nodes stay, and are not considered for a while (D-118)."""
    move = state.facts.moves[ref].move
    claims = [state.facts.claims[name] for name in move.claims if name in state.facts.claims]
    stay = [claim for claim in claims if goes_by(claim, move)]
    intents = [UntaintNode(claim.name, node.name) for claim in stay if (node := node_of(claim, state)) is not None]
    kept = replace(move, claims=tuple(claim.name for claim in stay))
    result = MoveStepResult(ref, ABANDONED, reason, verdicts=tuple(_keep_verdicts(kept, reason)))
    return NextStep(result, tuple(intents), events=tuple(ev.Untainted(claim.name, move.why) for claim in stay))


def _keep_verdicts(move: Move, reason: Reason) -> Iterator[Verdict]:
    yield from (Verdict(claim, move.why, "keep", reason) for claim in move.claims)
