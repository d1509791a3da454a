"""Which Node object belongs to a NodeClaim (L-160, L-161)."""

from __future__ import annotations

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.state.state import State


def node_of(claim: NodeClaim, state: State) -> Node | None:
    """The Node with the claim's provider id (L-160). Of several it is the one that the claim registered with, before
    that none (L-161)."""
    names = state.indexes.nodes_by_provider.get(claim.provider_id, {})
    if claim.node in names:
        return state.facts.nodes[claim.node]
    return state.facts.nodes[next(iter(names))] if len(names) == 1 else None
