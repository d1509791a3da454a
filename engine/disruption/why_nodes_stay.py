"""Why nodes stay after a disruption pass: the verdicts that it records, and their exact reasons."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.cluster_from_state import cluster_when_moves_start
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.kubernetes.pods import is_reschedulable
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.decisions import Move, Verdict
from kerf.engine.state.state import State

METHOD = "consolidation"
"""The method of a verdict on a node that stays."""


def verdicts(
    state: State, cluster: Cluster, reasons: dict[str, Reason], moves: list[Move], proposed: list[Move]
) -> Iterator[Verdict]:
    """A verdict on each claim in service whose reason is another than the latest recorded one.

    `reasons` say by node why it stays. `moves` are those of this pass; claims of moves that were `proposed` before it
    have their verdict already.
    """
    move_of_claim = {claim: move for move in moves for claim in move.claims}
    decided_before = frozenset(claim for move in proposed for claim in move.claims)
    for node in cluster.nodes:
        claim = state.facts.claims.get(node.place.claim)
        if claim is None or claim.state != INITIALIZED or claim.name in decided_before:
            continue
        move, reason = move_of_claim.get(claim.name), reasons.get(node.name)
        if move is not None:
            reason = Reason.of(DisruptionCode.MOVE_PROPOSED, why=move.why)
        elif reason is not None:
            reason = _exact(reason, state, claim.name, node)
        else:
            continue
        if reason.code != claim.verdict:
            yield Verdict(claim.name, METHOD, "keep", reason)


def why_it_stays(claim: NodeClaim, state: State, now: int) -> Reason | None:
    """What excludes a claim's node from all moves that a pass at `now` may propose; None for a candidate, about which
    the pass decides."""
    cluster = cluster_when_moves_start(state, now)
    node = next(node for node in cluster.nodes if node.place.claim == claim.name)
    return why_node_stays(node, cluster, state)


def why_node_stays(node: ClusterNode, cluster: Cluster, state: State) -> Reason | None:
    """As `why_it_stays`, of a node of a cluster that is at hand."""
    claim, candidate = node.place.claim, eligibility.judge_node(node, cluster, weighed=False)
    if isinstance(candidate, Reason):
        return _exact(candidate, state, claim, None)
    reason = (eligibility.consolidation if candidate.pods else eligibility.emptiness)(candidate)
    return None if reason is None else _exact(reason, state, claim, None if candidate.pods else node)


def reasons_of_empty_nodes(cluster: Cluster, excluded: dict[str, Reason]) -> dict[str, Reason]:
    """Of the reasons why nodes are not removed as empty, those of nodes without a pod to move: there they count."""
    return {
        node.name: excluded[node.name]
        for node in cluster.nodes
        if node.name in excluded and not _has_pods_to_move(node)
    }


def _has_pods_to_move(node: ClusterNode) -> bool:
    return any(map(is_reschedulable, node.pods))


def _exact(reason: Reason, state: State, claim: str, node: ClusterNode | None) -> Reason:
    """The reason in more exact terms, where there are some. `node` is given if it counts that it may be empty."""
    if reason.code == DisruptionCode.NOT_CONSOLIDATABLE and node is not None and not _has_pods_to_move(node):
        return Reason.of(DisruptionCode.EMPTY_NOT_LONG_ENOUGH)
    if reason.code == DisruptionCode.NOMINATED and state.indexes.waiting_for.get(claim):
        return Reason.of(DisruptionCode.AWAITING_PODS)
    return reason
