"""The fold of devices: ResourceClaims, DeviceClasses and ResourceSlices (S-195…S-199), and which slices are a
node's own, which its initialization waits for (L-175)."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, TypeVar

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kubernetes.devices import DeviceClass, DeviceFacts, ResourceClaim, ResourceSlice
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.entries import Entry
from kerf.engine.state.objects.kept import ObjectRules, plans_changed
from kerf.engine.state.state import State

_Key = TypeVar("_Key")
_Item = ResourceClaim | DeviceClass | ResourceSlice


def device_facts(state: State) -> DeviceFacts | None:
    """What the planner is told of devices: views of the state, not copies. None if it is not to look (S-194)."""
    facts, indexes = state.facts, state.indexes
    if facts.settings.ignore_dra_requests:
        return None
    going = {name for name in facts.nodes if facts.nodes[name].deleting}
    going |= {name for name, claim in indexes.claim_by_node.items() if facts.claims[claim].state in GOING}
    leaving = frozenset(uid for name in going for uid in indexes.pods_by_node.get(name, ()))
    promised = frozenset(uid for uid in leaving if uid in facts.targets)
    return DeviceFacts(
        facts.resource_claims, facts.device_classes, facts.resource_slices, indexes.made_claims, leaving, promised
    )


def own_slices(state: State, node: str) -> list[ResourceSlice]:
    """The slices that are this node's own, by name."""
    return [state.facts.resource_slices[name] for name in sorted(state.indexes.slices_by_node.get(node, ()))]


def index_devices(state: State) -> None:
    """Builds the indexes of devices from the facts."""
    for claim in state.facts.resource_claims.values():
        _index(state, claim)
    for resource_slice in state.facts.resource_slices.values():
        _index(state, resource_slice)


def device_rules(kind: WatchedKind) -> ObjectRules:
    """What the fold does with the objects of one of the three kinds."""
    table = attrgetter(kind.facts)
    key_of = attrgetter(kind.key)

    def seen(state: State, item: Any, entry: Entry) -> None:
        key, known = key_of(item), table(state.facts)
        old = known.get(key)
        if old == item:
            return
        if old is not None:
            _forget(state, old)
        known[key] = item
        _index(state, item)
        _look_at_nodes(state, entry, item, old)
        plans_changed(state, kind, entry)

    def gone(state: State, key: str, entry: Entry) -> None:
        old = table(state.facts).pop(key, None)
        if old is not None:
            _forget(state, old)
            _look_at_nodes(state, entry, old)
            plans_changed(state, kind, entry)

    return ObjectRules(seen, gone)


def _index(state: State, item: _Item) -> None:
    if isinstance(item, ResourceClaim) and item.made_for:
        state.indexes.made_claims.setdefault((item.made_for, item.own_name), {})[item.name] = None
    elif isinstance(item, ResourceSlice):
        for node in _nodes(item):
            state.indexes.slices_by_node.setdefault(node, {})[item.name] = None


def _forget(state: State, item: _Item) -> None:
    if isinstance(item, ResourceClaim):
        _drop(state.indexes.made_claims, (item.made_for, item.own_name), item.name)
    elif isinstance(item, ResourceSlice):
        for node in _nodes(item):
            _drop(state.indexes.slices_by_node, node, item.name)


def _drop(index: dict[_Key, dict[str, None]], key: _Key, name: str) -> None:
    names = index.get(key, {})
    names.pop(name, None)
    if not names:
        index.pop(key, None)


def _nodes(given: ResourceSlice) -> list[str]:
    return [name for name in dict.fromkeys((given.node, given.owner)) if name]


def _look_at_nodes(state: State, entry: Entry, *items: _Item | None) -> None:
    """A node that is not initialized may wait for slices of its own."""
    facts, indexes = state.facts, state.indexes
    for name in [node for item in items if isinstance(item, ResourceSlice) for node in _nodes(item)]:
        claim = indexes.claim_by_node.get(name)
        if claim is not None and not facts.claims[claim].initialized:
            indexes.touched[claim] = entry.position
