"""Whether a Node has what its NodeClaim was launched for (L-241)."""

from __future__ import annotations

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State

VERSION = 1
MIN_CAPACITY_PERCENT = 90
"""How much of the claim's capacity its Node has to report, in percent."""


def check(claim: NodeClaim, state: State) -> Reason | None:
    """A new finding about the Node of a claim in service: it has too little of some requested resources, or enough
    again.

    None when nothing has changed, or the Node has not reported its capacity yet.
    """
    node = node_of(claim, state) if claim.state == INITIALIZED else None
    if node is None or not node.capacity:
        return None
    asked = (name for name, amount in sorted(claim.requests.items()) if amount and claim.capacity.get(name))
    short = tuple(
        name for name in asked if node.capacity.get(name, 0) * 100 < claim.capacity[name] * MIN_CAPACITY_PERCENT
    )
    if short == claim.inconsistent:
        return None
    if not short:
        return Reason.of(LifecycleCode.NODE_SHAPE_CONSISTENT, node=node.name)
    return Reason.of(LifecycleCode.NODE_SHAPE_INCONSISTENT, node=node.name, resources=list(short))
