"""Deleted Nodes that belong to no NodeClaim: they are drained, then their finalizer is removed (L-239, W-80).

There is no instance to end, no deadline and no time to settle. Their effects name no claim; the state keeps by Node
what came of these.
"""

from __future__ import annotations

from kerf.engine.lifecycle.drain.pods import DISRUPTED, awaited, leave
from kerf.engine.lifecycle.drain.volumes import MAX_VOLUMES_NAMED, attached
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import Step, ask, wait
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim import effect_keys
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import DeleteNode, TaintNode
from kerf.engine.state.state import State

VERSION = 1
DECIDER = "lone"
"""The decider's name in the record."""


def deleted_nodes_without_claim(state: State) -> list[Node]:
    """Nodes that are being deleted and have no claim, by name. A Node whose NodeClaim is about to be adopted waits for
    that."""
    facts, indexes = state.facts, state.indexes
    names = sorted(name for name in indexes.deleted_nodes if name not in indexes.claim_by_node)
    if not names:
        return []
    ours = [f"{node_class.group}/{node_class.kind.lower()}" for node_class in facts.node_classes.values()]
    provider_ids = {known.claim.provider_id for known in facts.found.values()}
    nodes = [facts.nodes[name] for name in names]
    return [node for node in nodes if node.provider_id not in provider_ids and any(key in node.labels for key in ours)]


def drain_without_claim(node: Node, state: State, now: int) -> Step:
    """The next step of such a Node: the taint, its pods in their groups, its volumes, its finalizer (D-140, D-157)."""
    held = state.facts.lone.get(node.name, NodeClaim(""))
    if not any(taint.same(DISRUPTED) for taint in node.taints):
        return ask(held, effect_keys.TAINT, TaintNode("", node.name), now, code=LifecycleCode.NODE_WITHOUT_CLAIM)
    pods = awaited(node, state, now)
    if pods:
        return leave(held, node, pods, state, now)
    volumes = attached(node, state, now)
    if volumes:
        return wait(LifecycleCode.WAITING_FOR_VOLUMES, volumes=list(volumes[:MAX_VOLUMES_NAMED]), count=len(volumes))
    return ask(held, effect_keys.DELETE_NODE, DeleteNode("", node.name), now, code=LifecycleCode.DELETE_NODE)
