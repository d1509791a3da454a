"""Proposed moves whose time has come: validated again before they start (D-108…D-113).

A proposed move waits for the validation delay, then for room in the disruption budgets. Then it is validated: are its
nodes still candidates, and would their pods still find places? Moves that save most for each node come first, whichever
pass proposed them. The unit of work is the move, not one of its candidates (unlike D-120).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions, empty_within_budgets, within_budgets
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.disruption.consolidation.commands import placed
from kerf.engine.disruption.consolidation.rankings import fleet_of
from kerf.engine.disruption.consolidation.young_pods import too_soon
from kerf.engine.disruption.eligibility import Candidate, Filter, find_candidates
from kerf.engine.disruption.moves.budget_headroom import MAX_WAIT, BudgetHeadroom
from kerf.engine.disruption.moves.cluster_with_moves import with_moves, without_late_pods, without_room
from kerf.engine.disruption.moves.starting_order import starting_rank
from kerf.engine.disruption.moves.validation import simulated
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.engine.state.moves import proposal_order, replacements_awaited
from kerf.engine.state.state import State, Underway

TIME_PER_CANDIDATE, MIN_REPLACEMENT_TIME, MAX_REPLACEMENT_TIME = 80, 600_000, 3_600_000
"""How long replacements may take, in ms: so long for each candidate of all moves, within these bounds (D-117)."""
NODES_PER_TURN = 20_000
"""How many nodes the validations of one turn may look at in sum. Each looks at all nodes; what is left is due in the
next turn, so that nothing else waits for many moves that start at once."""
NO_ROOM = (DisruptionCode.SCHEDULING, DisruptionCode.LEFT_OVER)
"""Reasons against a move whose pods do not find the places that were planned."""


def due_at(state: State) -> int:
    """When the next step of a move is due (ms since the epoch), 0 for never."""
    moves = state.facts.moves
    if not moves:
        return 0
    limit, headroom = replacement_time_limit(state), BudgetHeadroom(state)
    return soonest(*(_due(underway, state, limit, headroom) for underway in moves.values()))


def _due(underway: Underway, state: State, limit: int, headroom: BudgetHeadroom) -> int:
    if not underway.started and state.facts.clocks_differ:
        return 0
    if underway.started:
        return underway.at + limit + 1 if replacements_awaited(state, underway.move) else 0
    at = _validation_due(underway, state)
    return at if headroom.allows(underway.move) else at + MAX_WAIT


def _validation_due(underway: Underway, state: State) -> int:
    """When a move is validated, if the budgets have room for it (D-108)."""
    return underway.at + validation_delay(underway.move.why, state)


def validation_delay(why: str, state: State) -> int:
    """How long a move for this reason is only proposed, in ms. Drifted nodes wait for nothing."""
    return 0 if why == DisruptionReason.DRIFTED else state.facts.settings.validation_delay


def replacement_time_limit(state: State) -> int:
    """How long replacements may take, in ms: 10 min to 1 h, by the number of candidates (D-117)."""
    candidates = sum(len(underway.move.claims) for underway in state.facts.moves.values())
    return max(MIN_REPLACEMENT_TIME, min(MAX_REPLACEMENT_TIME, TIME_PER_CANDIDATE * candidates))


def most_validations(state: State) -> int:
    """How many moves one turn validates, at least 1."""
    return max(1, NODES_PER_TURN // max(1, len(state.facts.claims)))


def validate_due_moves(state: State, now: int, most: int) -> dict[str, Move | Reason]:
    """The moves that may start now, by reference, in the order in which they start: each as it is to be carried out, or
    the reason to withdraw it. None while the clocks differ. No more than `most`, unless they go together."""
    if state.facts.clocks_differ or most < 1:
        return {}
    moves = state.facts.moves
    waiting = {ref: moves[ref] for ref in _in_starting_order(moves) if not moves[ref].started}
    headroom = BudgetHeadroom(state)
    due = [ref for ref, underway in waiting.items() if _validation_due(underway, state) <= now]
    if not any(_may_start(waiting[ref], state, now, headroom) for ref in due):
        return {}
    cluster = replace(cluster_of(state, now), promised=state.facts.targets)
    validated: dict[str, Move | Reason] = {}
    tried_as_a_whole: set[int] = set()  # positions of proposals
    for ref in due:
        if len(validated) >= most:
            break
        if ref in validated or not _may_start(waiting[ref], state, now, headroom):
            continue
        same_set = [other for other in due if other not in validated and _go_together(other, ref, waiting)]
        results: dict[str, Move | Reason] = {}
        if len(same_set) > 1 and proposal_order(ref)[0] not in tried_as_a_whole:
            tried_as_a_whole.add(proposal_order(ref)[0])
            others = [underway.move for other, underway in waiting.items() if other not in same_set]
            results = validate_together({other: waiting[other].move for other in same_set}, cluster, others)
        if not results:
            in_order, at = [underway.move for underway in waiting.values()], list(waiting).index(ref)
            results = {ref: validate_beside(in_order[at], cluster, in_order[:at], in_order[at + 1 :])}
        for validated_ref, result in results.items():
            del waiting[validated_ref]
            validated[validated_ref] = result
            if isinstance(result, Move):
                cluster = with_moves(cluster, [result])
                headroom.take(result)
    return validated


def _in_starting_order(moves: Mapping[str, Underway]) -> list[str]:
    """Moves by reference: those that save most for each node first, whichever pass proposed them."""
    return sorted(moves, key=lambda ref: (*starting_rank(moves[ref].move), proposal_order(ref)))


def _go_together(one: str, other: str, waiting: Mapping[str, Underway]) -> bool:
    """Whether two moves belong to one set whose pods leave in eviction waves."""
    return proposal_order(one)[0] == proposal_order(other)[0] and all(waiting[ref].move.turns for ref in (one, other))


def _may_start(underway: Underway, state: State, now: int, headroom: BudgetHeadroom) -> bool:
    """Whether the budgets have room for a move whose delay is over, or it has waited for room long enough."""
    return headroom.allows(underway.move) or _validation_due(underway, state) + MAX_WAIT <= now


# ── validation ─────────────────────────────────────────────────────────────────────────────────────────────────────


def validate(move: Move, cluster: Cluster, others: Iterable[Move]) -> Move | Reason:
    """The move as it may be carried out now, or the reason to withdraw it.

    `others` are moves proposed beside it. Their nodes may soon be gone, so no pod is placed on them.
    """
    if move.why == DisruptionReason.EMPTY:
        return _still_empty(move, cluster)
    if move.why == DisruptionReason.DRIFTED:
        return move  # D-108: proposed a moment ago, and never validated
    return _still_worth_it(move, cluster, others)


def validate_beside(move: Move, cluster: Cluster, before: Sequence[Move], after: Sequence[Move]) -> Move | Reason:
    """As `validate`, beside the moves that start before it and after it.

    Where pods came to other nodes than was planned, not all of these moves fit any more. Then the move takes the room
    of those after it: what saves least is given up.
    """
    result = validate(move, cluster, [*before, *after])
    if isinstance(result, Move) or result.code not in NO_ROOM:
        return result
    taken = validate(move, without_room(cluster, after), before)
    return taken if isinstance(taken, Move) else result


def validate_together(moves: Mapping[str, Move], cluster: Cluster, others: Iterable[Move]) -> dict[str, Move | Reason]:
    """Validation of moves that go together (D-110): all whose nodes still are candidates, as a whole.

    Moves whose nodes are no candidates any more are withdrawn. Empty if the others cannot go as a whole: then each move
    is validated by itself.
    """
    results: dict[str, Move | Reason] = {}
    present: dict[str, list[Candidate]] = {}
    candidates = find_candidates(cluster, eligibility.consolidation).chosen
    for ref, move in moves.items():
        own = [candidate for candidate in candidates if candidate.node.place.claim in move.claims]
        present |= {ref: own} if len(own) == len(move.claims) else {}
        results[ref] = Reason.of(DisruptionCode.CHURN, claims=list(move.claims))
    going = [candidate for own in present.values() for candidate in own]
    if not going or not _all_within_budgets(going, cluster):
        return {}
    names = [candidate.name for candidate in going]
    beside = with_moves(cluster, others)
    outcome = simulated(Simulator(beside, prepared=False), names, 0, ())
    waves = next(iter(moves.values())).turns
    if isinstance(outcome, Reason) or Rebinding(beside, waves).unbound(names, ()):
        return {}
    placements = {ref: placed(outcome.placements, own) for ref, own in present.items()}
    return results | {ref: replace(moves[ref], placements=own) for ref, own in placements.items()}


def _still_candidates(move: Move, cluster: Cluster, own: Filter) -> tuple[list[Candidate], list[str]]:
    """The candidates of the move that still are some, and the claims of the others."""
    claims = frozenset(move.claims)
    known = eligibility.judge_nodes(cluster, claims=claims)
    present = list(find_candidates(cluster, own, known=known).chosen)
    return present, sorted(claims - {candidate.node.place.claim for candidate in present})


def _all_within_budgets(candidates: list[Candidate], cluster: Cluster) -> bool:
    limits = allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED)
    return len(within_budgets(candidates, limits)) == len(candidates)


def _still_empty(move: Move, cluster: Cluster) -> Move | Reason:
    """The move for those of its nodes that are still empty, within the budgets (D-109)."""
    present, gone = _still_candidates(move, cluster, eligibility.emptiness)
    if not present:
        return Reason.of(DisruptionCode.CHURN, claims=gone)
    allowed = empty_within_budgets(present, cluster)
    if not allowed:
        return Reason.of(DisruptionCode.BUDGET, nodepool=present[0].pool.name)
    savings = sum(candidate.price for candidate in allowed)
    return replace(move, claims=tuple(sorted(candidate.node.place.claim for candidate in allowed)), savings=savings)


def _still_worth_it(move: Move, cluster: Cluster, others: Iterable[Move]) -> Move | Reason:
    """The whole move or nothing of it, with its pods where they would go now (D-110)."""
    present, gone = _still_candidates(move, cluster, eligibility.consolidation)
    if gone:
        return Reason.of(DisruptionCode.CHURN, claims=gone)
    if not _all_within_budgets(present, cluster):
        return Reason.of(DisruptionCode.BUDGET, nodepool=present[0].pool.name)
    names = [candidate.name for candidate in present]
    pool, options = next(((new.node_pool, new.instance_types) for new in move.replacements), ("", ()))
    beside = with_moves(cluster, others)
    soon = too_soon(move.savings, present, fleet_of(beside), cluster.now)
    if soon is not None:
        return soon
    outcome = simulated(Simulator(beside, prepared=False), names, len(move.replacements), options, pool)
    if isinstance(outcome, Reason):
        return outcome
    if Rebinding(beside, move.turns).unbound(names, outcome.claims):
        return Reason.of(DisruptionCode.LEFT_OVER)
    replacements = tuple(
        replace(planned, pods=opened.pods, requests=opened.requests)
        for planned, opened in zip(move.replacements, outcome.claims, strict=True)
    )
    return without_late_pods(replace(move, replacements=replacements, placements=outcome.placements), cluster, others)
