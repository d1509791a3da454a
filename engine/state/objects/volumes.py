"""What planning is told of volumes (S-152…S-159), and how the fold takes attachments, which drains wait for (D-155)."""

from __future__ import annotations

from kerf.engine.model.kubernetes.volumes import (
    VolumeAttachment,
    VolumeFacts,
)
from kerf.engine.record.entries import Entry
from kerf.engine.state.state import State


def volume_facts(state: State) -> VolumeFacts:
    """What the planner is told of volumes: views of the state, not copies."""
    facts = state.facts
    limits = {name: node.limits for name, node in facts.csi_nodes.items()}
    hosts = None
    if any(volume.local for volume in facts.volumes.values()):
        hosts = frozenset(node.host for node in facts.nodes.values())
    return VolumeFacts(facts.volume_claims, facts.volumes, facts.storage_classes, limits, hosts)


def index_attachments(state: State) -> None:
    """Builds the index of attachments from the facts."""
    for attachment in state.facts.attachments.values():
        state.indexes.attachments_by_node.setdefault(attachment.node, {})[attachment.name] = None


def attachment_seen(state: State, attachment: VolumeAttachment, entry: Entry) -> None:
    old = state.facts.attachments.get(attachment.name)
    if old == attachment:
        return
    if old is not None and old.node != attachment.node:
        attachment_gone(state, old.name, entry)
    state.facts.attachments[attachment.name] = attachment
    state.indexes.attachments_by_node.setdefault(attachment.node, {})[attachment.name] = None
    _look_at(state, attachment.node, entry)


def attachment_gone(state: State, name: str, entry: Entry) -> None:
    attachment = state.facts.attachments.pop(name, None)
    if attachment is None:
        return
    names = state.indexes.attachments_by_node.get(attachment.node, {})
    names.pop(name, None)
    if not names:
        state.indexes.attachments_by_node.pop(attachment.node, None)
    _look_at(state, attachment.node, entry)


def _look_at(state: State, node: str, entry: Entry) -> None:
    """Only a drain asks what is attached."""
    name = state.indexes.claim_by_node.get(node)
    if name is not None and name in state.indexes.going:
        state.indexes.touched[name] = entry.position
