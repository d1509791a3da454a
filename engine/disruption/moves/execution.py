"""Moves on their way: looked at again after a while (D-108…D-113), carried out (D-115), and given up when a replacement
does not come (D-116…D-118). The work item is the move, not one of its candidates (unlike D-120)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions, within_budgets
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.disruption.consolidation.sequential_search import placed
from kerf.engine.disruption.eligibility import Candidate, Filter, find_candidates
from kerf.engine.disruption.moves.budget_headroom import MAX_WAIT, BudgetHeadroom
from kerf.engine.disruption.moves.cluster_with_moves import with_moves, without_late_pods
from kerf.engine.disruption.moves.validation import simulated
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.lifecycle.step import may_ask, soonest
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim import effects
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import STEADY, TAINTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Intent, Move, MoveStepResult, PlannedClaim, TaintNode, UntaintNode, Verdict
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.provision import claim_names, launch_orders
from kerf.engine.state.moves import ABANDONED, STARTED, WITHDRAWN, proposal
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State, Underway

VERSION = 11
A_CANDIDATE, LEAST_TIME, MOST_TIME = 80, 600_000, 3_600_000
"""D-117: so long replacements may take, in ms: by the number of candidates of all moves, within these bounds."""


class Next(Struct, frozen=True):
    """A move's next step. `requested` are the replacements: `Requested` events are the caller's, for they name the
    decision's position; `events` follow."""

    result: MoveStepResult
    intents: tuple[Intent, ...] = ()
    requested: tuple[PlannedClaim, ...] = ()
    events: tuple[Struct, ...] = ()


def due_at(state: State) -> int:
    """When the next step of a move is due (ms since the epoch), 0 for never."""
    moves = state.facts.moves
    if not moves:
        return 0
    limit, room = time_limit(state), BudgetHeadroom(state)
    return soonest(*(_due(each, state, limit, room) for each in moves.values()))


def _due(underway: Underway, state: State, limit: int, room: BudgetHeadroom) -> int:
    if underway.started:
        return underway.at + limit + 1 if waits(underway.move, state) else 0
    at = _second_look(underway, state)
    return at if room.has(underway.move) else at + MAX_WAIT


def _second_look(underway: Underway, state: State) -> int:
    """D-108, when there is room for it."""
    return underway.at + (0 if underway.move.why == DisruptionReason.DRIFTED else state.facts.settings.validation_delay)


def time_limit(state: State) -> int:
    """How long replacements may take, in ms: 10 min to 1 h, by the number of candidates (D-117)."""
    candidates = sum(len(each.move.claims) for each in state.facts.moves.values())
    return max(LEAST_TIME, min(MOST_TIME, A_CANDIDATE * candidates))


def ready(state: State, now: int) -> dict[str, Move | Reason]:
    """The proposed moves whose time has come and that the budgets have room for, in the order of their proposal: each
    as it is to be carried out, or why it is not. Each is judged with the ones before it under way."""
    moves = state.facts.moves
    waiting = {ref: moves[ref] for ref in sorted(moves, key=proposal) if not moves[ref].started}
    room = BudgetHeadroom(state)
    due = [ref for ref, each in waiting.items() if _second_look(each, state) <= now]
    if not any(_may_start(waiting[ref], state, now, room) for ref in due):
        return {}
    cluster = cluster_of(state, now)
    judged: dict[str, Move | Reason] = {}
    asked: set[int] = set()  # proposals whose moves go together: as a whole they are judged once
    for ref in due:
        if ref in judged or not _may_start(waiting[ref], state, now, room):
            continue
        beside = [each for each in due if each not in judged and _together(each, ref, waiting)]
        found: dict[str, Move | Reason] = {}
        if len(beside) > 1 and proposal(ref)[0] not in asked:
            asked.add(proposal(ref)[0])
            rest = [each.move for other, each in waiting.items() if other not in beside]
            found = still_together({each: waiting[each].move for each in beside}, cluster, rest)
        if not found:
            rest = [each.move for other, each in waiting.items() if other != ref]
            found = {ref: validated(waiting[ref].move, cluster, rest)}
        for each, result in found.items():
            del waiting[each]
            judged[each] = result
            if isinstance(result, Move):
                cluster = with_moves(cluster, [result])
                room.take(result)
    return judged


def _together(one: str, other: str, waiting: Mapping[str, Underway]) -> bool:
    """Whether two moves are of one set that goes by turns."""
    return proposal(one)[0] == proposal(other)[0] and all(waiting[each].move.turns for each in (one, other))


def _may_start(underway: Underway, state: State, now: int, room: BudgetHeadroom) -> bool:
    """Whether a move whose delay is over has room, or has waited for it long enough."""
    return room.has(underway.move) or _second_look(underway, state) + MAX_WAIT <= now


# ── the second look ────────────────────────────────────────────────────────────────────────────────────────────────


def validated(move: Move, cluster: Cluster, others: Iterable[Move]) -> Move | Reason:
    """`others` are proposals beside it, whose nodes may soon be gone: nothing is built on these."""
    if move.why == DisruptionReason.EMPTY:
        return _still_empty(move, cluster)
    if move.why == DisruptionReason.DRIFTED:
        return move  # D-108: proposed a moment ago, and never validated
    return _still_worth_it(move, cluster, others)


def still_together(moves: Mapping[str, Move], cluster: Cluster, others: Iterable[Move]) -> dict[str, Move | Reason]:
    """D-110 for moves that go together: those whose nodes are no candidates any more stay, the others go if they may as
    a whole. Nothing if they may not: then each of them is judged by itself."""
    found: dict[str, Move | Reason] = {}
    present: dict[str, list[Candidate]] = {}
    candidates = find_candidates(cluster, eligibility.consolidation).chosen
    for ref, move in moves.items():
        own = [each for each in candidates if each.node.place.claim in move.claims]
        present |= {ref: own} if len(own) == len(move.claims) else {}
        found[ref] = Reason.of(DisruptionCode.CHURN, claims=list(move.claims))
    going = [each for own in present.values() for each in own]
    if not going or len(within_budgets(going, allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED))) < len(
        going
    ):
        return {}
    names = [each.name for each in going]
    beside = with_moves(cluster, others)
    outcome = simulated(Simulator(beside, prepared=False), names, 0, ())
    turns = next(iter(moves.values())).turns
    if isinstance(outcome, Reason) or Rebinding(beside, turns).unbound(names, ()):
        return {}
    arrivals = {ref: placed(outcome.placements, own) for ref, own in present.items()}
    return found | {ref: replace(moves[ref], placements=there) for ref, there in arrivals.items()}


def _present(move: Move, cluster: Cluster, own: Filter) -> tuple[list[Candidate], list[str]]:
    """The candidates that still are some, and the claims of the others."""
    claims = frozenset(move.claims)
    found = list(find_candidates(cluster, own, known=eligibility.judge_nodes(cluster, claims=claims)).chosen)
    return found, sorted(claims - {each.node.place.claim for each in found})


def _still_empty(move: Move, cluster: Cluster) -> Move | Reason:
    """D-109: those that still are empty, within the budgets."""
    present, gone = _present(move, cluster, eligibility.emptiness)
    if not present:
        return Reason.of(DisruptionCode.CHURN, claims=gone)
    kept = within_budgets(present, allowed_disruptions(cluster, DisruptionReason.EMPTY))
    if not kept:
        return Reason.of(DisruptionCode.BUDGET, nodepool=present[0].pool.name)
    savings = sum(each.price for each in kept)
    return replace(move, claims=tuple(sorted(each.node.place.claim for each in kept)), savings=savings)


def _still_worth_it(move: Move, cluster: Cluster, others: Iterable[Move]) -> Move | Reason:
    """D-110: all or nothing. Pods go where they would go now."""
    present, gone = _present(move, cluster, eligibility.consolidation)
    if gone:
        return Reason.of(DisruptionCode.CHURN, claims=gone)
    if len(within_budgets(present, allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED))) < len(present):
        return Reason.of(DisruptionCode.BUDGET, nodepool=present[0].pool.name)
    names = [each.name for each in present]
    options = move.replacements[0].instance_types if move.replacements else ()
    beside = with_moves(cluster, others)
    found = simulated(Simulator(beside, prepared=False), names, len(move.replacements), options)
    if isinstance(found, Reason):
        return found
    if Rebinding(beside, move.turns).unbound(names, found.claims):
        return Reason.of(DisruptionCode.LEFT_OVER)
    news = tuple(
        replace(old, pods=new.pods, requests=new.requests)
        for old, new in zip(move.replacements, found.claims, strict=True)
    )
    return without_late_pods(replace(move, replacements=news, placements=found.placements), cluster, others)


# ── carrying out ───────────────────────────────────────────────────────────────────────────────────────────────────


def next_step(ref: str, found: Move | Reason, state: State, now: int) -> Next:
    """A validated move starts, another is withdrawn."""
    move = state.facts.moves[ref].move
    if isinstance(found, Reason):
        return _withdrawn(ref, move, found)
    return start(ref, found, state, now)


def _withdrawn(ref: str, move: Move, reason: Reason) -> Next:
    return Next(MoveStepResult(ref, WITHDRAWN, reason, verdicts=tuple(_kept(move, reason))))


def start(ref: str, move: Move, state: State, now: int) -> Next:
    """D-115: taints on all candidates, replacements on their way, all in one decision."""
    claims = [state.facts.claims[name] for name in move.claims if name in state.facts.claims]
    if len(claims) < len(move.claims) or any(claim.state not in STEADY for claim in claims):
        return _withdrawn(ref, move, Reason.of(DisruptionCode.CHURN, claims=list(move.claims)))
    names = claim_names([each.node_pool for each in move.replacements], state)
    news = tuple(replace(each, name=name) for each, name in zip(move.replacements, names, strict=True))
    problem = cluster_of(state, now).base if news else Problem((), {}, (), {})
    if not {new.node_pool for new in news} <= {each.pool.name for each in problem.pools}:  # it was taken away since
        return _withdrawn(ref, move, Reason.of(DisruptionCode.SCHEDULING, why="no-nodepool"))
    orders = launch_orders(news, problem)
    if not all(order.offers for order in orders):
        return _withdrawn(ref, move, Reason.of(DisruptionCode.SCHEDULING, why="no-offering"))
    begun = replace(move, replacements=news)
    verdicts = tuple(_condemned(claim, move, now) for claim in claims)
    return Next(
        result=MoveStepResult(ref, STARTED, Reason(move.why), begun, verdicts),
        intents=(*orders, *(intent for claim in claims for intent in _taint(claim, state, now))),
        requested=news,
        events=tuple(_tainted(claim, move, now) for claim in claims),
    )


def _condemned(claim: NodeClaim, move: Move, now: int) -> Verdict:
    params: dict[str, str | int | float | list[str]] = {}
    if move.why == DisruptionReason.EMPTY:
        params["quiet"] = now - (claim.last_pod_event or claim.initialized)
    return Verdict(claim.name, move.why, "remove", Reason(move.why, params))


def _tainted(claim: NodeClaim, move: Move, now: int) -> ev.Tainted:
    """While it waits for its replacement no pod's time runs: the deadline is set when the drain starts."""
    grace = claim.termination_grace_period
    deadline = None if grace is None or move.replacements else now + grace  # L-189
    return ev.Tainted(claim.name, move.why, deadline, age=now - claim.created)


def _taint(claim: NodeClaim, state: State, now: int) -> list[Intent]:
    node = node_of(claim, state)
    if node is None or not may_ask(claim.effect(effects.TAINT), now):
        return []
    return [TaintNode(claim.name, node.name)]


# ── giving up ──────────────────────────────────────────────────────────────────────────────────────────────────────


def failed(state: State, now: int) -> Iterator[tuple[str, Reason]]:
    """The moves that have started and cannot come to their end (D-116, D-117)."""
    moves = state.facts.moves
    for ref in sorted(ref for ref, each in moves.items() if each.started and each.move.replacements):
        each = moves[ref]
        lost = [new.name for new in each.move.replacements if new.name not in state.facts.claims]
        if lost:
            yield ref, Reason.of(DisruptionCode.REPLACEMENT_LOST, claims=lost)
        elif now - each.at > time_limit(state) and waits(each.move, state):
            yield ref, Reason.of(DisruptionCode.REPLACEMENT_LATE, waited=now - each.at)


def waits(move: Move, state: State) -> bool:
    """Whether a replacement is not in service yet."""
    claims = state.facts.claims
    return any(new.name not in claims or not claims[new.name].initialized for new in move.replacements)


def abandon(ref: str, reason: Reason, state: State, now: int) -> Next:
    """D-118: the nodes stay, and are left alone for a while."""
    move = state.facts.moves[ref].move
    claims = [state.facts.claims[name] for name in move.claims if name in state.facts.claims]
    stay = [claim for claim in claims if claim.state == TAINTED and claim.why == move.why]
    intents = [UntaintNode(claim.name, node.name) for claim in stay if (node := node_of(claim, state)) is not None]
    kept = replace(move, claims=tuple(claim.name for claim in stay))
    result = MoveStepResult(ref, ABANDONED, reason, verdicts=tuple(_kept(kept, reason)))
    return Next(result, tuple(intents), events=tuple(ev.Untainted(claim.name, move.why) for claim in stay))


def _kept(move: Move, reason: Reason) -> Iterator[Verdict]:
    yield from (Verdict(claim, move.why, "keep", reason) for claim in move.claims)
