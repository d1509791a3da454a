"""How the fold takes devices: ResourceClaims, DeviceClasses and ResourceSlices (S-195…S-199), and which slices are a
node's own, which its initialization waits for (L-175)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from kerf.engine.model.kubernetes.devices import DeviceClass, DeviceFacts, ResourceClaim, ResourceSlice
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import room_changed, unsettle
from kerf.engine.state.state import Facts, State

_Key = TypeVar("_Key")
_Item = ResourceClaim | DeviceClass | ResourceSlice
_TABLES: dict[str, Callable[[Facts], dict[str, Any]]] = {
    "resourceclaim": lambda facts: facts.resource_claims,
    "deviceclass": lambda facts: facts.device_classes,
    "resourceslice": lambda facts: facts.resource_slices,
}
"""By kind as in ObjectGone."""
DEVICE_KINDS = tuple(_TABLES)


def device_facts(state: State) -> DeviceFacts | None:
    """What the planner is told of devices: views of the state, not copies. None if it is not to look (S-194)."""
    facts, ix = state.facts, state.ix
    if facts.settings.ignore_dra_requests:
        return None
    going = {name for name in facts.nodes if facts.nodes[name].deleting}
    going |= {name for name, claim in ix.claim_by_node.items() if facts.claims[claim].state in GOING}
    leaving = frozenset(uid for name in going for uid in ix.pods_by_node.get(name, ()))
    promised = frozenset(uid for uid in leaving if uid in facts.targets)
    return DeviceFacts(
        facts.resource_claims, facts.device_classes, facts.resource_slices, ix.made_claims, leaving, promised
    )


def own_slices(state: State, node: str) -> list[ResourceSlice]:
    """The slices that are this node's own, by name."""
    return [state.facts.resource_slices[name] for name in sorted(state.ix.slices_by_node.get(node, ()))]


def index_devices(state: State) -> None:
    """Builds the indexes of devices from the facts."""
    for claim in state.facts.resource_claims.values():
        _index(state, claim)
    for each in state.facts.resource_slices.values():
        _index(state, each)


def device_gone(state: State, kind: str, key: str, entry: Entry) -> None:
    """One of DEVICE_KINDS was deleted."""
    old = _TABLES[kind](state.facts).pop(key, None)
    if old is not None:
        _forget(state, old)
        _changed(state, entry, old)


def _seen(kind: str) -> Callable[[State, Any, Entry], None]:
    table = _TABLES[kind]

    def handler(state: State, item: _Item, entry: Entry) -> None:
        key = item.key if isinstance(item, ResourceClaim) else item.name
        known = table(state.facts)
        old = known.get(key)
        if old == item:
            return
        if old is not None:
            _forget(state, old)
        known[key] = item
        _index(state, item)
        _changed(state, entry, item, old)

    return handler


def _index(state: State, item: _Item) -> None:
    if isinstance(item, ResourceClaim) and item.made_for:
        state.ix.made_claims.setdefault((item.made_for, item.own_name), {})[item.name] = None
    elif isinstance(item, ResourceSlice):
        for node in _nodes(item):
            state.ix.slices_by_node.setdefault(node, {})[item.name] = None


def _forget(state: State, item: _Item) -> None:
    if isinstance(item, ResourceClaim):
        _drop(state.ix.made_claims, (item.made_for, item.own_name), item.name)
    elif isinstance(item, ResourceSlice):
        for node in _nodes(item):
            _drop(state.ix.slices_by_node, node, item.name)


def _drop(index: dict[_Key, dict[str, None]], key: _Key, name: str) -> None:
    names = index.get(key, {})
    names.pop(name, None)
    if not names:
        index.pop(key, None)


def _nodes(given: ResourceSlice) -> list[str]:
    return [name for name in dict.fromkeys((given.node, given.owner)) if name]


def _changed(state: State, entry: Entry, *items: _Item | None) -> None:
    """A plan looks at devices only for pods that ask for some; a node that is not initialized may wait for slices."""
    facts, ix = state.facts, state.ix
    for name in [node for each in items if isinstance(each, ResourceSlice) for node in _nodes(each)]:
        claim = ix.claim_by_node.get(name)
        if claim is not None and not facts.claims[claim].initialized:
            ix.touched[claim] = entry.position
    if facts.settings.ignore_dra_requests:
        return
    unsettle(facts, entry.at)
    if facts.batch_last == entry.at:  # the window knows already
        return
    if ix.going or any(ix.blobs.shape(facts.pods[uid].shape).resource_claims for uid in ix.pending):
        room_changed(state, entry.at)


DEVICE_HANDLERS: dict[type[Struct], Callable[[State, Any, Entry], None]] = {
    ResourceClaim: _seen("resourceclaim"),
    DeviceClass: _seen("deviceclass"),
    ResourceSlice: _seen("resourceslice"),
}
