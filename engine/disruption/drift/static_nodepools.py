"""StaticDrift: drifted nodes of static NodePools, each replaced straight from the template (D-167)."""

from __future__ import annotations

from itertools import groupby

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.eligibility import Candidate, find_candidates
from kerf.engine.disruption.moves.cluster_with_moves import with_moves
from kerf.engine.lifecycle.static_nodepools import NODES, claims_to_launch, is_ready, withheld_requirements
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.decisions import Move
from kerf.engine.scheduling.claims_without_pods import planned_without_pods
from kerf.engine.state.state import State


def replace_drifted_static(cluster: Cluster, state: State, refused: dict[str, Reason]) -> tuple[list[Move], Cluster]:
    """One move for each drifted node, replacement first; and the cluster with these moves under way.

    Writes to `refused` why each other drifted node cannot go now. Nothing is simulated: such a node is not there for
    the pods on it.
    """
    moves: list[Move] = []
    if not state.facts.settings.static_capacity:
        return moves, cluster
    found = find_candidates(cluster, eligibility.static_drift, eventual=True).chosen
    for name, drifted in groupby(sorted(found, key=_longest), key=lambda each: each.pool.name):
        candidates = list(drifted)
        if not is_ready(candidates[0].pool, state):
            why = Reason.of(DisruptionCode.NODEPOOL_NOT_READY, nodepool=name)
            refused |= {candidate.name: why for candidate in candidates}
            continue
        withheld = withheld_requirements(candidates[0].pool, state)
        if withheld:
            why = Reason.of(DisruptionCode.NOT_REPLACED_AGAIN, nodepool=name, requirements=list(withheld))
            refused |= {candidate.name: why for candidate in candidates}
            continue
        granted, reason = _granted(candidates[0], allowed_disruptions(cluster, DisruptionReason.DRIFTED)[name], state)
        replaced = _replaced(candidates[:granted], cluster.now, state)
        moves += replaced
        for candidate in candidates[len(replaced) :]:
            refused[candidate.name] = reason if len(replaced) == granted else Reason.of(DisruptionCode.NO_OFFERING)
    return moves, with_moves(cluster, moves)


def _longest(candidate: Candidate) -> tuple[str, int, str]:
    """The order: by NodePool, then the node that drifted first."""
    return candidate.pool.name, candidate.node.drifted_since, candidate.name


def _granted(candidate: Candidate, budget: int, state: State) -> tuple[int, Reason]:
    """How many nodes of the candidate's NodePool may be replaced now, and why no more.

    A scale-down comes first, and replacements count against the limit while the old nodes are there (D-168).
    """
    pool = candidate.pool
    mine = [claim for claim in state.facts.claims.values() if claim.node_pool == pool.name]
    running = sum(claim.state not in GOING for claim in mine)
    if running > (pool.replicas or 0):
        return 0, Reason.of(DisruptionCode.SCALE_DOWN_FIRST, count=running - (pool.replicas or 0))
    limit = (pool.limits or {}).get(NODES)
    room = budget if limit is None else limit - len(mine)
    if room < budget:
        return max(0, room), Reason.of(DisruptionCode.NO_ROOM_TO_REPLACE, nodes=limit or 0)
    return max(0, budget), Reason.of(DisruptionCode.BUDGET, nodepool=pool.name)


def _replaced(candidates: list[Candidate], now: int, state: State) -> list[Move]:
    """The moves that replace these candidates; none if nothing is on offer."""
    if not candidates:
        return []
    pool = candidates[0].pool
    asked = claims_to_launch(pool, len(candidates), state, now)
    return [
        Move(DisruptionReason.DRIFTED.value, (candidate.node.place.claim,), (planned_without_pods("", pool.name, new),))
        for candidate, new in zip(candidates, asked, strict=False)
    ]
