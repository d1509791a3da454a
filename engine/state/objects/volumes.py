"""How the fold takes volumes: what planning needs of them (S-152…S-159), and attachments, which drains wait for
(D-155)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kerf.engine.model.kubernetes.volumes import (
    CSINode,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeClaim,
    VolumeFacts,
)
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import room_changed, unsettle
from kerf.engine.state.state import Facts, State

_Table = Callable[[Facts], dict[str, Any]]
_TABLES: dict[str, _Table] = {
    "pvc": lambda facts: facts.volume_claims,
    "pv": lambda facts: facts.volumes,
    "storageclass": lambda facts: facts.storage_classes,
    "csinode": lambda facts: facts.csi_nodes,
}
"""What plans depend on, by kind as in ObjectGone."""
_ATTACHMENT = "volumeattachment"
VOLUME_KINDS = (*_TABLES, _ATTACHMENT)


def volume_facts(state: State) -> VolumeFacts:
    """What the planner is told of volumes: views of the state, not copies."""
    facts = state.facts
    limits = {name: node.limits for name, node in facts.csi_nodes.items()}
    return VolumeFacts(facts.volume_claims, facts.volumes, facts.storage_classes, limits)


def index_attachments(state: State) -> None:
    """Builds the index of attachments from the facts."""
    for attachment in state.facts.attachments.values():
        state.ix.attachments_by_node.setdefault(attachment.node, {})[attachment.name] = None


def volume_gone(state: State, kind: str, key: str, entry: Entry) -> None:
    """One of VOLUME_KINDS was deleted."""
    if kind == _ATTACHMENT:
        _detached(state, key, entry)
    elif _TABLES[kind](state.facts).pop(key, None) is not None:
        _changed(state, entry)


def _seen(kind: str) -> Callable[[State, Any, Entry], None]:
    table = _TABLES[kind]

    def handler(state: State, item: VolumeClaim | Volume | StorageClass | CSINode, entry: Entry) -> None:
        key = item.key if isinstance(item, VolumeClaim) else item.name
        known = table(state.facts)
        if known.get(key) != item:
            known[key] = item
            _changed(state, entry)

    return handler


def _changed(state: State, entry: Entry) -> None:
    """A plan looks at volumes only for pods that have some."""
    facts, ix = state.facts, state.ix
    unsettle(facts, entry.at)
    if facts.batch_last == entry.at:  # the window knows already
        return
    if ix.going or any(ix.blobs.shape(facts.pods[uid].shape).volumes for uid in ix.pending):
        room_changed(state, entry.at)


def _attachment_seen(state: State, attachment: VolumeAttachment, entry: Entry) -> None:
    old = state.facts.attachments.get(attachment.name)
    if old == attachment:
        return
    if old is not None and old.node != attachment.node:
        _detached(state, old.name, entry)
    state.facts.attachments[attachment.name] = attachment
    state.ix.attachments_by_node.setdefault(attachment.node, {})[attachment.name] = None
    _look_at(state, attachment.node, entry)


def _detached(state: State, name: str, entry: Entry) -> None:
    attachment = state.facts.attachments.pop(name, None)
    if attachment is None:
        return
    names = state.ix.attachments_by_node.get(attachment.node, {})
    names.pop(name, None)
    if not names:
        state.ix.attachments_by_node.pop(attachment.node, None)
    _look_at(state, attachment.node, entry)


def _look_at(state: State, node: str, entry: Entry) -> None:
    """Only a drain asks what is attached."""
    name = state.ix.claim_by_node.get(node)
    if name is not None and name in state.ix.going:
        state.ix.touched[name] = entry.position


VOLUME_HANDLERS: dict[type[Struct], Callable[[State, Any, Entry], None]] = {
    VolumeClaim: _seen("pvc"),
    Volume: _seen("pv"),
    StorageClass: _seen("storageclass"),
    CSINode: _seen("csinode"),
    VolumeAttachment: _attachment_seen,
}
