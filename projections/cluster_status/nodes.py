"""Each node: what its pods ask for of what it has, what it costs, and why it stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kerf.engine.disruption.cluster import ClusterNode
from kerf.engine.disruption.cluster_from_state import cluster_when_moves_start
from kerf.engine.disruption.moves.budget_headroom import BudgetHeadroom
from kerf.engine.disruption.why_nodes_stay import why_node_stays
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Resources, is_terminal
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, INITIALIZED, LAUNCHED, REGISTERED, REQUESTED, TAINTED
from kerf.engine.scheduling.explain.overlaid_prices import OverlaidPrices
from kerf.engine.scheduling.explain.refused_offerings import replaced_again_at
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.pods.on_node import pods_on_node
from kerf.engine.state.state import State
from kerf.projections.cluster_status.closed_budgets import held_by_closed_budgets
from kerf.projections.cluster_status.structs import NodeStatus, Usage
from kerf.projections.cluster_status.under_way import LATE_AFTER, MOVE, budgets_of_pods
from kerf.projections.cluster_status.waiting_pods import lacks_pods
from kerf.projections.cordons import is_cordoned
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.projections.prose.few_words import few_words

UNMANAGED = "unmanaged"
"""The state of a node that belongs to no NodeClaim."""
ALWAYS_SHOWN = ("cpu", "memory", "pods")
_NOT_SHOWN = ("ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi")
_HELD_BY_BUDGETS = (DisruptionCode.POD_BUDGET_EXHAUSTED, DisruptionCode.SEVERAL_POD_BUDGETS)
_COMING = {REQUESTED: "launching", LAUNCHED: "joining", REGISTERED: "starting"}


def node_statuses(state: State, now: int) -> tuple[NodeStatus, ...]:
    """Return all nodes and claims: by NodePool, the emptiest first."""
    facts = state.facts
    stays = _reasons(state, now)
    overlaid = OverlaidPrices(state)
    nodes = [_of_claim(claim, state, now, stays.get(claim.name), overlaid) for claim in facts.claims.values()]
    nodes += [_unmanaged(node, state, now) for name, node in facts.nodes.items() if not _claim_of(name, state)]
    return tuple(sorted(nodes, key=lambda node: (node.node_pool, fullness(node), node.name, node.claim)))


def fullness(node: NodeStatus) -> float:
    """Return how much of the resource that it has least left of a node's pods ask for, from 0 to 1."""
    shares = [usage.requested / usage.allocatable for name, usage in node.usage.items() if _counts(name, usage)]
    return max(shares, default=0.0)


def summed(usages: Iterable[dict[str, Usage]]) -> dict[str, Usage]:
    """Return the sums over nodes, by resource."""
    requested, allocatable = Counter[str](), Counter[str]()
    for usage in usages:
        for name, part in usage.items():
            requested[name] += part.requested
            allocatable[name] += part.allocatable
    return {name: Usage(requested[name], allocatable[name]) for name in sorted(requested)}


def _counts(name: str, usage: Usage) -> bool:
    return name != "pods" and usage.allocatable > 0


def _claim_of(node: str, state: State) -> str:
    return state.indexes.claim_by_node.get(node, "")


def _reasons(state: State, now: int) -> dict[str, Reason]:
    """Return by claim why it stays: what excludes it from moves now, or else what the latest pass said (its code). A
    move that was proposed may wait for the disruption budgets."""
    if state.facts.tells_history:
        return {}  # another controller decided
    if not any(claim.state == INITIALIZED for claim in state.facts.claims.values()):
        return {}
    cluster = cluster_when_moves_start(state, now)
    nodes: dict[str, ClusterNode] = {node.place.claim: node for node in cluster.nodes}
    reasons: dict[str, Reason] = {}
    for claim in state.facts.claims.values():
        if claim.state == INITIALIZED and claim.name in nodes:
            found = why_node_stays(nodes[claim.name], cluster, state)
            if state.facts.clocks_differ and found is None:
                found = Reason.of(DisruptionCode.CLOCKS_DIFFER)
            reasons[claim.name] = found or Reason(claim.verdict or DisruptionCode.NOT_LOOKED_AT.value)
    held = [state.facts.claims[name] for name, reason in reasons.items() if reason.code == DisruptionCode.BUDGET]
    closed = dict.fromkeys(held_by_closed_budgets(held, state, now), Reason.of(ExplanationCode.BUDGET_ALLOWS_NONE))
    return reasons | _waiting_for_budgets(reasons, state) | closed


def _waiting_for_budgets(reasons: dict[str, Reason], state: State) -> dict[str, Reason]:
    headroom = BudgetHeadroom(state)
    proposed = [move.move for move in state.facts.moves.values() if not move.started]
    return {
        name: Reason.of(ExplanationCode.WAITS_FOR_BUDGET, why=move.why)
        for move in proposed
        for name in move.claims
        if name in reasons and reasons[name].code == DisruptionCode.MOVE_PROPOSED and not headroom.allows(move)
    }


def _of_claim(claim: NodeClaim, state: State, now: int, reason: Reason | None, overlaid: OverlaidPrices) -> NodeStatus:
    node = node_of(claim, state)
    name = claim.node or (node.name if node is not None else "")
    ready = node is not None and (node.ready or state.facts.tells_history)  # what kubelets say is seldom in a history
    return NodeStatus(
        name=name or claim.name,
        claim=claim.name,
        node_pool=claim.node_pool,
        state=claim.state,
        ready=ready,
        instance_type=claim.instance_type,
        capacity_type=claim.capacity_type,
        zone=claim.zone,
        price=claim.price if claim.launched else 0.0,
        age=max(0, now - claim.created),
        pods=_pods(name, state),
        usage=_usage(name, node.allocatable if node is not None and node.allocatable else claim.allocatable, state),
        going=claim.why if claim.state in GOING else "",
        reason=reason,
        few_words=_few_words(claim, ready, reason),
        drifted_since=claim.drifted_since,
        kept_by=_kept_by(claim, state, now, reason),
        overlaid=overlaid.of(claim),
        again=replaced_again_at(state, now, claim) if _nothing_cheaper(reason) else 0,
        cordoned=node is not None and is_cordoned(node),
    )


def _kept_by(claim: NodeClaim, state: State, now: int, reason: Reason | None) -> tuple[str, ...]:
    """Return the budgets that keep a drifted node for longer than a move may take, and do so until they change. One
    that lets pods go in turn keeps nodes for a while in every rollout."""
    held = reason is not None and reason.code in _HELD_BY_BUDGETS
    if not held or not claim.drifted_since or now - claim.drifted_since <= LATE_AFTER[MOVE]:
        return ()
    return budgets_of_pods(claim, state, EvictionRules.never_letting_go)


def _nothing_cheaper(reason: Reason | None) -> bool:
    return reason is not None and reason.code == DisruptionCode.NOTHING_CHEAPER


def _few_words(claim: NodeClaim, ready: bool, reason: Reason | None) -> str:
    if claim.state in GOING:
        return f"{'goes' if claim.state == TAINTED else 'drains'}: {few_words(claim.why)}"
    if claim.state in _COMING:
        return _COMING[claim.state]
    if not ready:
        return "not ready"
    return few_words(reason.code) if reason is not None else ""


def _unmanaged(node: Node, state: State, now: int) -> NodeStatus:
    labels = node.labels
    return NodeStatus(
        name=node.name,
        claim="",
        node_pool=labels.get(lbl.NODEPOOL, ""),
        state=UNMANAGED,
        ready=node.ready,
        instance_type=labels.get(lbl.INSTANCE_TYPE, ""),
        capacity_type=labels.get(lbl.CAPACITY_TYPE, ""),
        zone=labels.get(lbl.ZONE, ""),
        price=0.0,
        age=max(0, now - node.created) if node.created else 0,
        pods=_pods(node.name, state),
        usage=_usage(node.name, node.allocatable, state),
        going="deleted" if node.deleting else "",
        reason=None,
        few_words=_of_unmanaged(node, state),
        cordoned=is_cordoned(node),
    )


def _of_unmanaged(node: Node, state: State) -> str:
    if node.deleting:
        return "being deleted"
    if state.facts.tells_history:
        return "of no NodeClaim"
    return "not kerf's" if node.ready else "not ready"


def _pods(node: str, state: State) -> int:
    uids = state.indexes.pods_by_node.get(node, {}) if node else {}
    return sum(not is_terminal(state.facts.pods[uid]) for uid in uids)


def _usage(node: str, allocatable: Resources, state: State) -> dict[str, Usage]:
    """Return what the node's pods ask for of what it has: CPU, memory and pods always, other resources if it has
    some. Nothing where the record does not know the pods."""
    if lacks_pods(state):
        return {}
    asked = pods_on_node(state, node).used if node else {}
    names = {*ALWAYS_SHOWN, *(name for name, amount in allocatable.items() if amount and name not in _NOT_SHOWN)}
    return {name: Usage(asked.get(name, 0), allocatable.get(name, 0)) for name in sorted(names)}
