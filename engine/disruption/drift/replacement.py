"""Replacing drifted nodes: one move for each, whatever it costs, as far as the disruption budgets allow (D-62…D-65)."""

from __future__ import annotations

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.drift.destinations import DriftDestinations
from kerf.engine.disruption.eligibility import Candidate, find_candidates
from kerf.engine.disruption.moves.cluster_with_moves import with_moves
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.engine.scheduling.launchable.withheld import withheld_of_pool
from kerf.engine.scheduling.provision import planned_claim

MAX_SIMULATIONS = 100
"""Drifted nodes that one pass simulates, at most."""
ROTATION = 60_000
"""Where more nodes have drifted than one pass simulates, it tries other ones after this time (ms)."""


def replace_drifted(cluster: Cluster, refused: dict[str, Reason]) -> list[Move]:
    """Moves for drifted nodes.

    Writes to `refused` why each other drifted node cannot go now. A node that takes pods of another drifted node stays
    until these have arrived.
    """
    if not any(node.drifted_since for node in cluster.nodes):
        return []
    reasons: dict[str, Reason] = {}
    destinations = DriftDestinations(cluster, ask_scheduler=False)
    moves = _replace_one_by_one(cluster, reasons, destinations)
    if destinations.may_leave_pods_over():
        reasons.clear()
        moves = _replace_one_by_one(cluster, reasons, DriftDestinations(cluster, ask_scheduler=True))
    refused |= reasons
    return moves


def _replace_one_by_one(cluster: Cluster, refused: dict[str, Reason], destinations: DriftDestinations) -> list[Move]:
    moves: list[Move] = []
    taking_pods: set[str] = set()
    simulations = 0
    drifted = find_candidates(cluster, eligibility.drift, eventual=True).chosen
    for candidate in rotated(longest_drifted_first(drifted), cluster.now):
        if allowed_disruptions(cluster, DisruptionReason.DRIFTED)[candidate.pool.name] <= 0:
            refused[candidate.name] = Reason.of(DisruptionCode.BUDGET, nodepool=candidate.pool.name)
            continue
        if candidate.name in taking_pods:
            refused[candidate.name] = Reason.of(DisruptionCode.NOMINATED)
            continue
        if simulations >= MAX_SIMULATIONS:
            break
        simulations += 1
        move = replace_node(cluster, candidate, destinations)
        if isinstance(move, Reason):
            refused[candidate.name] = move
            continue
        cluster = with_moves(cluster, [move])
        moves.append(move)
        taking_pods.update(placement.node for placement in move.placements)
    return moves


def longest_drifted_first(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """Nodes without pods to move first, then those that drifted first (D-63)."""
    return sorted(
        candidates, key=lambda candidate: (bool(candidate.pods), candidate.node.drifted_since, candidate.name)
    )


def rotated(candidates: list[Candidate], now: int) -> list[Candidate]:
    """The order in which they are tried, where one pass cannot try all.

    Half of the tries go to the first ones; the other half go to other candidates each minute. So no candidate waits for
    ever behind candidates that have no place.
    """
    if len(candidates) <= MAX_SIMULATIONS:
        return candidates
    half = MAX_SIMULATIONS // 2
    first, others = candidates[:half], candidates[half:]
    start = now // ROTATION * half % len(others)
    return [*first, *others[start:], *others[:start]]


def _not_replaced_again(cluster: Cluster, candidate: Candidate) -> Reason | None:
    """The reason if the candidate's NodePool launches nothing, because launches did not give what it asks for."""
    given = next(given for given in cluster.pools if given.pool.name == candidate.pool.name)
    withheld = withheld_of_pool(given.pool, given.withheld)
    if not withheld:
        return None
    return Reason.of(DisruptionCode.NOT_REPLACED_AGAIN, nodepool=candidate.pool.name, requirements=list(withheld))


def replace_node(
    cluster: Cluster, candidate: Candidate, destinations: DriftDestinations | None = None
) -> Move | Reason:
    """The move that replaces one drifted node, or why it cannot go (D-64, D-65).

    `destinations` knows the nodes that go before it in the same pass.
    """
    destinations = destinations or DriftDestinations(cluster, ask_scheduler=True)
    outcome = destinations.find(cluster, candidate)
    if outcome.failure is not None:
        return _not_replaced_again(cluster, candidate) or outcome.failure
    replacements = tuple(planned_claim("", opened) for opened in outcome.claims)
    return Move(DisruptionReason.DRIFTED.value, (candidate.node.place.claim,), replacements, outcome.placements)
