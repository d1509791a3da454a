"""How the fold takes what only some settings look at: Services and workloads (default topology spread, S-151),
NodeOverlays (S-183), CapacityBuffers with the PodTemplates and workloads that they name (S-177), and how many pods of
buffers a plan has put on which node (S-182)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record.decisions import ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import keeps_room, room_changed
from kerf.engine.state.state import Facts, State

_Item = Service | Workload | NodeOverlay | CapacityBuffer | PodTemplate
_TABLES: dict[str, Callable[[Facts], dict[str, Any]]] = {
    "service": lambda facts: facts.services,
    "workload": lambda facts: facts.workloads,
    "nodeoverlay": lambda facts: facts.overlays,
    "capacitybuffer": lambda facts: facts.buffers,
    "podtemplate": lambda facts: facts.pod_templates,
}
"""By kind as in ObjectGone."""
EXTENSION_KINDS = tuple(_TABLES)


def extension_gone(state: State, kind: str, key: str, entry: Entry) -> None:
    """One of EXTENSION_KINDS was deleted."""
    if _TABLES[kind](state.facts).pop(key, None) is not None:
        if not keeps_room(state.facts):  # no pass will say so
            state.facts.buffered = {}
        _changed(state, kind, entry)


def buffered(facts: Facts, result: ProvisionResult) -> dict[str, int]:
    """How many pods of buffers a plan puts on each claim, or unmanaged node (S-182). Claims that it opens count as
    well, so that no node is empty before the next pass has looked at it."""
    uids = {each.uid for each in facts.buffers.values()}
    if not uids:
        return {}
    placed = [(each.claim or each.node, each.pods) for each in result.placements]
    placed += [(each.name, each.pods) for each in result.claims]
    counts = {name: sum(_of_buffer(facts, uid, uids) for uid in pods) for name, pods in placed}
    return {name: count for name, count in counts.items() if count}


def _of_buffer(facts: Facts, uid: str, buffers: set[str]) -> bool:
    return uid not in facts.pods and uid.rpartition("-")[0] in buffers


def _seen(kind: str) -> Callable[[State, Any, Entry], None]:
    table = _TABLES[kind]

    def handler(state: State, item: _Item, entry: Entry) -> None:
        key = item.name if isinstance(item, NodeOverlay) else item.key
        known = table(state.facts)
        if known.get(key) != item:
            known[key] = item
            _changed(state, kind, entry)

    return handler


def _changed(state: State, kind: str, entry: Entry) -> None:
    """A plan looks at it, if the settings say so."""
    settings = state.facts.settings
    looks: Mapping[str, bool] = {
        "service": bool(settings.default_spread),
        "workload": bool(settings.default_spread) or keeps_room(state.facts),
        "nodeoverlay": settings.node_overlays,
        "capacitybuffer": settings.capacity_buffers,
        "podtemplate": keeps_room(state.facts),
    }
    if looks[kind]:
        room_changed(state, entry.at)


EXTENSION_HANDLERS: dict[type[Struct], Callable[[State, Any, Entry], None]] = {
    Service: _seen("service"),
    Workload: _seen("workload"),
    NodeOverlay: _seen("nodeoverlay"),
    CapacityBuffer: _seen("capacitybuffer"),
    PodTemplate: _seen("podtemplate"),
}
