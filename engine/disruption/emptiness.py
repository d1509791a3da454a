"""Emptiness (D-35, D-55…D-59): a node that hosts nothing to keep, and has not for `consolidateAfter`."""

from __future__ import annotations

from kerf.engine.disruption.reasons import EMPTY
from kerf.engine.disruption.verdict import Finding, keep, remove
from kerf.engine.model.labels import DO_NOT_DISRUPT
from kerf.engine.model.pods import is_reschedulable
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.table import INITIALIZED
from kerf.engine.state.state import State


def empty(claim: NodeClaim, state: State, now: int) -> Finding:
    """Whether the claim's node may go because nothing runs there; with the first reason why not."""
    if claim.state != INITIALIZED:
        return keep(EMPTY, "not-initialized")
    pool = state.facts.pools.get(claim.node_pool)
    if pool is None:
        return keep(EMPTY, "no-nodepool", nodepool=claim.node_pool)
    if pool.replicas is not None:
        return keep(EMPTY, "static-nodepool")
    if pool.consolidate_after is None:
        return keep(EMPTY, "consolidate-after-never")
    node = state.facts.nodes.get(claim.node)
    if node is None:
        return keep(EMPTY, "no-node")
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        return keep(EMPTY, "do-not-disrupt")
    pods = state.ix.pods_by_node.get(claim.node, {})
    if any(is_reschedulable(state.facts.pods[uid]) for uid in pods):
        return keep(EMPTY, "has-pods")
    if state.ix.waiting_for.get(claim.name):
        return keep(EMPTY, "awaiting-pods")
    quiet_since = claim.last_pod_event or claim.initialized  # D-56
    at = max(quiet_since + pool.consolidate_after, claim.nominated_until)
    if now < at:
        return keep(EMPTY, "empty-not-long-enough", due=at)
    return remove(EMPTY, "empty", quiet=now - quiet_since)
