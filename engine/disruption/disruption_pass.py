"""A disruption pass: which moves to propose now, why each other node stays, and when to look again (D-16, D-22,
D-62…D-66).

Empty nodes come first, then drifted ones, then kerf's own set of moves; each within what the budgets leave beside all
that is under way already. Passes run when something has changed or a time has come, never on a period.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.binding import Binding
from kerf.engine.disruption.budgets import active
from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.cluster_from_state import NEVER, cluster_of, quiet_at
from kerf.engine.disruption.consolidation.balanced_policy import BALANCED, Totals, pool_totals, scores
from kerf.engine.disruption.consolidation.commands import Command, Replacement, removal
from kerf.engine.disruption.consolidation.joint_search import jointly
from kerf.engine.disruption.consolidation.karpenter_methods import allowed
from kerf.engine.disruption.consolidation.sequential_search import LEAST, WORK, Moves, choose
from kerf.engine.disruption.drift.destinations import DriftPlaces
from kerf.engine.disruption.drift.static_nodepools import static_drift
from kerf.engine.disruption.eligibility import Candidate, Judged, census, judged
from kerf.engine.disruption.moves.budget_headroom import AHEAD
from kerf.engine.disruption.moves.cluster_with_moves import underway, without_late
from kerf.engine.errors import InputError
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.cron import next_after, parse
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import is_reschedulable
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.decisions import Move, MovesResult, PlannedClaim, Verdict
from kerf.engine.scheduling.matching.requirements import Requirement
from kerf.engine.scheduling.pods.evictability import FOREVER, protected_until
from kerf.engine.scheduling.provision import planned_claim
from kerf.engine.state.provisioning_window import closes_at
from kerf.engine.state.state import State

VERSION = 15
PERIOD = 10_000
"""Between two passes, at least (D-16)."""
SETTLE = 1_000
"""So long a pass waits for what belongs to the change that brings it about."""
MOST_DRIFTED = 100
"""Simulations for drifted nodes in one pass, at most."""
NO_WAY = (DisruptionCode.NO_PLACE, DisruptionCode.NO_USABLE_NODEPOOL)
"""What they come to when a node's pods have nowhere to go (D-64, D-90)."""
TURN = 60_000
"""When so many came to nothing, others are tried this long (ms) after."""
NO_TOTALS: Mapping[str, Totals] = MappingProxyType({})
METHOD = "consolidation"
"""The method of a verdict on a node that stays."""


def due_at(state: State) -> int:
    """When the next pass is due (ms since the epoch), 0 for never. It comes after the provisioning pass that is due:
    what pods wait for is in its picture then."""
    facts = state.facts
    times = [facts.moves_changed + SETTLE if facts.moves_changed else 0, facts.moves_look_at]
    due = soonest(*times)
    if not due or not any(claim.state == INITIALIZED for claim in facts.claims.values()):
        return 0
    due = max(due, facts.moves_looked + PERIOD)
    return max(due, closes_at(facts)) if facts.batch_opened else due


def look(state: State, now: int) -> MovesResult:
    """One pass."""
    there = cluster_of(state, now)
    proposed = [each.move for _, each in sorted(state.facts.moves.items()) if not each.started]
    cluster = underway(there, proposed)
    refused: dict[str, Reason] = {}
    known = judged(cluster)
    found = census(cluster, eligibility.emptiness, known=known)
    replaced, cluster = static_drift(cluster, state, refused)
    drifted, cluster = replace_drifted(cluster, refused)
    in_vain = sum(why.code in NO_WAY for why in refused.values())
    again = now + TURN if not drifted and in_vain >= MOST_DRIFTED else 0
    moves = replaced + [without_late(each, there, proposed) for each in drifted]
    chosen, turns = own_moves(cluster, None if moves else known, refused)
    totals = _totals(cluster, None if moves else known, chosen.commands)
    moves += [move_of(each, turns, totals) for each in _by_worth(chosen.commands)]
    kept = {**chosen.kept, **_idle(cluster, found.excluded), **refused}
    verdicts = tuple(_verdicts(state, cluster, kept, moves, proposed))
    short = _short_of_budget([*chosen.kept.values(), *refused.values()])
    look_at = soonest(again, _look_at(state, cluster, short, now))
    return MovesResult(tuple(moves), verdicts, look_at, chosen.exhausted)


def own_moves(cluster: Cluster, known: Judged | None, refused: dict[str, Reason]) -> tuple[Moves, tuple[int, ...]]:
    """kerf's own moves, and by which turns their pods leave: one set that goes at once if that comes to a cheaper
    fleet, else commands one after the other. Why others cannot go is left in `refused`."""
    at_once, binding = jointly(cluster, known), Binding(cluster)
    work = max(WORK // 3, WORK - at_once.work)
    chosen = choose(cluster, work=work, known=known, rounds=AHEAD, fits=binding.fits)
    least = at_once.moves.end_price if at_once.moves is not None else math.inf
    kept = binding.bindable(chosen.commands) if chosen.end_price <= least + LEAST else []
    dropped = [each for each in chosen.commands if each not in kept]
    end_price = math.fsum([chosen.end_price, *(each.savings for each in dropped)])
    if at_once.moves is not None and least < end_price - LEAST:
        return at_once.moves, at_once.turns
    refused |= {name: Reason.of(DisruptionCode.LEFT_OVER) for each in dropped for name in each.names}
    return replace(chosen, commands=tuple(kept), end_price=end_price), ()


# ── drift ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def replace_drifted(cluster: Cluster, refused: dict[str, Reason]) -> tuple[list[Move], Cluster]:
    """Each drifted node by itself, as long as the budgets allow (D-62…D-65): the moves, and the cluster with them under
    way. Why others cannot go is left in `refused`. One that takes pods of another stays until they are there."""
    if not any(node.drifted_since for node in cluster.nodes):
        return [], cluster
    told: dict[str, Reason] = {}
    places = DriftPlaces(cluster, asking=False)
    found = _drifted_in_turn(cluster, told, places)
    if places.left_over():
        told.clear()
        found = _drifted_in_turn(cluster, told, DriftPlaces(cluster, asking=True))
    refused |= told
    return found


def _drifted_in_turn(cluster: Cluster, refused: dict[str, Reason], places: DriftPlaces) -> tuple[list[Move], Cluster]:
    moves: list[Move] = []
    promised: set[str] = set()
    tried = 0
    for each in in_turn(by_age(census(cluster, eligibility.drift, eventual=True).chosen), cluster.now):
        if allowed(cluster, DisruptionReason.DRIFTED)[each.pool.name] <= 0:
            refused[each.name] = Reason.of(DisruptionCode.BUDGET, nodepool=each.pool.name)
            continue
        if each.name in promised:
            refused[each.name] = Reason.of(DisruptionCode.NOMINATED)
            continue
        if tried >= MOST_DRIFTED:
            break
        tried += 1
        found = drift(cluster, each, places)
        if isinstance(found, Reason):
            refused[each.name] = found
            continue
        cluster = underway(cluster, [found])
        moves.append(found)
        promised.update(place.node for place in found.placements)
    return moves, cluster


def by_age(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """D-63: without pods to move first, then by how long they have drifted."""
    return sorted(candidates, key=lambda each: (bool(each.pods), each.node.drifted_since, each.name))


def in_turn(candidates: list[Candidate], now: int) -> list[Candidate]:
    """If they are more than one pass tries: the first ones first, but for half of the tries others have their turn each
    minute. None waits for ever behind those that have no place."""
    if len(candidates) <= MOST_DRIFTED:
        return candidates
    half = MOST_DRIFTED // 2
    first, others = candidates[:half], candidates[half:]
    start = now // TURN * half % len(others)
    return [*first, *others[start:], *others[:start]]


def drift(cluster: Cluster, candidate: Candidate, places: DriftPlaces | None = None) -> Move | Reason:
    """D-64, D-65: what replaces a drifted node, whatever it costs. `places`: of those that go before it in the pass."""
    outcome = (places or DriftPlaces(cluster, asking=True)).found(cluster, candidate)
    if outcome.failure is not None:
        return outcome.failure
    replacements = tuple(planned_claim("", each) for each in outcome.claims)
    return Move(DisruptionReason.DRIFTED.value, (candidate.node.place.claim,), replacements, outcome.placements)


def _by_worth(commands: Iterable[Command]) -> list[Command]:
    """In the order in which they get what room the budgets have: those that save most per node first. An empty node
    waits for no other."""
    parts: list[Command] = []
    for command in commands:
        empty = command.reason == DisruptionReason.EMPTY
        parts += [removal([candidate]) for candidate in command.candidates] if empty else [command]
    return sorted(parts, key=lambda each: (round(-each.savings / len(each.candidates), 9), each.evictions, each.names))


# ── from commands to moves ─────────────────────────────────────────────────────────────────────────────────────────


def _totals(cluster: Cluster, known: Judged | None, commands: Iterable[Command]) -> Mapping[str, Totals]:
    """By which Balanced NodePools score these commands; nothing where none of them is of one."""
    if not any(each.pool.consolidation_policy == BALANCED for command in commands for each in command.candidates):
        return {}
    return pool_totals(cluster, census(cluster, eligibility.consolidation, known=known).eligible)


def move_of(command: Command, turns: tuple[int, ...] = (), totals: Mapping[str, Totals] = NO_TOTALS) -> Move:
    """`turns`: by which pods of nodes leave that go together; `totals`: of the NodePools that score it (D-84)."""
    return Move(
        why=command.reason.value,
        claims=tuple(sorted(each.node.place.claim for each in command.candidates)),
        replacements=tuple(map(_planned, command.replacements)),
        placements=command.placements,
        savings=command.savings,
        turns=turns if command.reason != DisruptionReason.EMPTY else (),
        scores=scores(command, totals) if totals and command.reason != DisruptionReason.EMPTY else (),
    )


def _planned(new: Replacement) -> PlannedClaim:
    """As it will be asked for (S-164)."""
    kinds = new.capacity_types
    least = new.requirements.get(INSTANCE_TYPE).min_values
    asked = new.requirements.without([INSTANCE_TYPE]).merged(
        [
            Requirement(INSTANCE_TYPE, False, frozenset(new.instance_types), min_values=least),
            Requirement(CAPACITY_TYPE, False, frozenset(kinds)),
        ]
    )
    return PlannedClaim(
        name="",
        node_pool=new.claim.node_pool,
        pods=new.claim.pods,
        instance_types=new.instance_types,
        requirements=tuple(spec for each in asked for spec in each.specs()),
        requests=new.claim.requests,
        price=new.price,
        capacity_types=kinds,
        labels=new.claim.labels,
        min_values_relaxed=new.claim.min_values_relaxed,
        overlaid=new.claim.overlaid,
        drivers=new.claim.drivers,
    )


# ── why the others stay, and until when ────────────────────────────────────────────────────────────────────────────


def _verdicts(
    state: State, cluster: Cluster, kept: dict[str, Reason], moves: list[Move], proposed: list[Move]
) -> Iterator[Verdict]:
    """Of every claim in service of which there is something new to say."""
    going = {claim: move for move in moves for claim in move.claims}
    known = frozenset(claim for move in proposed for claim in move.claims)
    for node in cluster.nodes:
        claim = state.facts.claims.get(node.place.claim)
        if claim is None or claim.state != INITIALIZED or claim.name in known:
            continue
        move, why = going.get(claim.name), kept.get(node.name)
        if move is not None:
            reason = Reason.of(DisruptionCode.MOVE_PROPOSED, why=move.why)
        elif why is not None:
            reason = _precisely(why, state, claim.name, node)
        else:
            continue
        if reason.code != claim.verdict:
            yield Verdict(claim.name, METHOD, "keep", reason)


def why_it_stays(claim: NodeClaim, state: State, now: int) -> Reason | None:
    """What excludes a claim's node from all moves at this moment; None for a candidate, of which a pass decides."""
    cluster = cluster_of(state, now)
    node = next(each for each in cluster.nodes if each.place.claim == claim.name)
    found = eligibility.judge(node, cluster)
    if isinstance(found, Reason):
        return _precisely(found, state, claim.name, None)
    why = (eligibility.consolidation if found.pods else eligibility.emptiness)(found)
    return None if why is None else _precisely(why, state, claim.name, None if found.pods else node)


def _idle(cluster: Cluster, excluded: dict[str, Reason]) -> dict[str, Reason]:
    """Of a node without pods to move it counts why it is not taken as empty."""
    return {node.name: excluded[node.name] for node in cluster.nodes if node.name in excluded and _bare(node)}


def _bare(node: ClusterNode) -> bool:
    return not any(map(is_reschedulable, node.pods))


def _precisely(why: Reason, state: State, claim: str, node: ClusterNode | None) -> Reason:
    """`node`: if it counts that nothing on it has to move."""
    if why.code == DisruptionCode.NOT_CONSOLIDATABLE and node is not None and _bare(node):
        return Reason.of(DisruptionCode.EMPTY_NOT_LONG_ENOUGH)
    if why.code == DisruptionCode.NOMINATED and state.ix.waiting_for.get(claim):
        return Reason.of(DisruptionCode.AWAITING_PODS)
    return why


def _short_of_budget(kept: Iterable[Reason]) -> frozenset[str]:
    """The NodePools that have nodes which only a budget keeps."""
    return frozenset(str(why.params.get("nodepool", "")) for why in kept if why.code == DisruptionCode.BUDGET)


def _look_at(state: State, cluster: Cluster, short: frozenset[str], now: int) -> int:
    """The earliest time at which a pass may come to something else although nothing changes. `short` are NodePools
    whose budgets do not suffice."""
    facts = state.facts
    times = [hold.until for hold in facts.holds.values() if hold.again or facts.moves_changed > hold.since]
    times += facts.unavailable.values()
    for claim in facts.claims.values():
        if claim.state == INITIALIZED:
            times += (quiet_at(claim, state), claim.nominated_until)
    shielded = (pod for node in cluster.nodes if node.managed for pod in node.pods if pod.do_not_disrupt)
    times += map(protected_until, shielded)
    times += [window_ends(facts.pools[name], now) for name in sorted(short & facts.pools.keys())]
    return min((at for at in times if now < at < min(NEVER, FOREVER)), default=0)


def window_ends(pool: NodePool, now: int) -> int:
    """When the first of the budgets that are in force now may no longer be (D-45), 0 for none."""
    ends = [0]
    for budget in pool.budgets:
        try:
            if budget.schedule is not None and budget.duration is not None and active(budget, now):
                fired = next_after(parse(budget.schedule), now - budget.duration)
                ends.append(0 if fired is None else fired + budget.duration)
        except InputError:
            continue
    return soonest(*ends)
