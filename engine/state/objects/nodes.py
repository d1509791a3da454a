"""The fold of Nodes: which NodeClaim each belongs to, and whether its room has changed."""

from __future__ import annotations

from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import free_capacity_changed, note_disruption_change
from kerf.engine.state.state import State


def node_seen(state: State, node: Node, entry: Entry) -> None:
    indexes = state.indexes
    old = state.facts.nodes.get(node.name)
    if old == node:
        return
    if old is not None and old.provider_id != node.provider_id:
        _unlink(state, old, entry)  # another instance took its name
    state.facts.nodes[node.name] = node
    if node.deleting:
        indexes.deleted_nodes[node.name] = None
    else:  # another Node took its name while nobody watched
        indexes.deleted_nodes.pop(node.name, None)
        state.facts.lone.pop(node.name, None)
    if node.provider_id:
        indexes.nodes_by_provider.setdefault(node.provider_id, {})[node.name] = None
        claim = indexes.claim_by_provider.get(node.provider_id)
        if claim is not None:
            indexes.claim_by_node[node.name] = claim
            indexes.touched[claim] = entry.position
    if _in_service(state, node) and (old is None or _room(old) != _room(node)):
        free_capacity_changed(state, entry.at)
    if old is None or (_room(old), old.ready, old.annotations) != (_room(node), node.ready, node.annotations):
        note_disruption_change(state.facts, entry.at)
    if old is None or _health(old) != _health(node):
        _health_changed(state, entry)


def _health(node: Node) -> tuple[object, ...]:
    """What counts of a Node where others are to be repaired (D-135)."""
    return node.labels.get(lbl.NODEPOOL), node.ready, node.ready_since, node.conditions


def _health_changed(state: State, entry: Entry) -> None:
    """Whether a repair is held back depends on all nodes."""
    state.indexes.touched.update(dict.fromkeys(state.indexes.held_back, entry.position))


def _in_service(state: State, node: Node) -> bool:
    """Whether pods are placed by what the Node itself says (S-71), or leave it because it is being deleted (S-50)."""
    claim = state.facts.claims.get(state.indexes.claim_by_node.get(node.name, ""))
    return claim.state == INITIALIZED if claim is not None else lbl.NODEPOOL not in node.labels or bool(node.deleting)


def _room(node: Node) -> tuple[object, ...]:
    return node.labels, node.taints, node.allocatable, node.deleting


def node_gone(state: State, name: str, entry: Entry) -> None:
    node = state.facts.nodes.pop(name, None)
    state.facts.lone.pop(name, None)
    state.indexes.deleted_nodes.pop(name, None)
    if node is not None:
        _unlink(state, node, entry)
        free_capacity_changed(state, entry.at)
        _health_changed(state, entry)


def _unlink(state: State, node: Node, entry: Entry) -> None:
    indexes = state.indexes
    names = indexes.nodes_by_provider.get(node.provider_id, {})
    names.pop(node.name, None)
    if not names:
        indexes.nodes_by_provider.pop(node.provider_id, None)
    claim = indexes.claim_by_node.pop(node.name, None)
    if claim is not None:
        indexes.touched[claim] = entry.position


def index_repair(state: State, claim: NodeClaim) -> None:
    """Whether the claim's repair waits for other nodes (D-135): it is looked at again when one of these changes."""
    if claim.repair in (DisruptionCode.REPAIR_BLOCKED, DisruptionCode.REPAIR_WAITS):
        state.indexes.held_back[claim.name] = None
    else:
        state.indexes.held_back.pop(claim.name, None)
