"""Device pools: which published slices count, and which of their devices a node can have (S-196, S-197)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.devices import AttributeBinding, Device, ResourceSlice
from kerf.engine.model.labels import WELL_KNOWN

DeviceKey = tuple[str, str, str]
"""Driver, pool and name."""
PoolKey = tuple[str, str]
"""Driver and name."""
CounterKey = tuple[str, str, str, str]
"""Driver, pool, counter set and counter."""


OWN_POOL_PREFIX = "own:"
"""Before the pool's name in keys of devices that come of slice templates: no published pool's name holds a colon."""


class OfferedDevice(Struct, frozen=True, eq=False):
    """A device that a node can have. `local`: it comes with the node, by a slice template or because it names this
    node. `requirements`: what else it or its slice asks of nodes, all terms together."""

    key: DeviceKey
    device: Device
    local: bool
    requirements: Requirements

    @property
    def driver(self) -> str:
        return self.key[0]


class DevicePool(Struct, frozen=True, eq=False):
    """A pool: its slices of the highest generation, by name. `complete`: all of them are there. `sound`: they do not
    contradict themselves."""

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...]
    complete: bool
    sound: bool

    def counters(self) -> dict[CounterKey, int]:
        return {
            (self.driver, self.name, counter_set.counter_set, counter): amount
            for part in self.slices
            for counter_set in part.counters
            for counter, amount in counter_set.counters.items()
        }


BoundAttributes = Mapping[str, Mapping[DeviceKey, int]]
"""Attribute → device → the number of its group: devices of one group will have one value of the attribute."""


class OwnDevices(Struct, frozen=True, eq=False):
    """What a node will publish for itself: the slice templates of its type, under names that no published pool has."""

    pools: tuple[DevicePool, ...] = ()
    bound: BoundAttributes = {}


class PublishedPools:
    """All published pools, by the node that can have devices of them. Most pools belong to one node."""

    def __init__(self, pools: Sequence[DevicePool]) -> None:
        """`pools`: by driver and name."""
        self._everywhere: list[tuple[int, DevicePool]] = []
        self._of_node: dict[str, list[tuple[int, DevicePool]]] = {}
        for number, pool in enumerate(pools):
            node = _sole_node(pool)
            (self._of_node.setdefault(node, []) if node else self._everywhere).append((number, pool))

    def near(self, node: str) -> list[DevicePool]:
        """The pools that the node can have devices of, in their order."""
        return [pool for _, pool in sorted([*self._everywhere, *self._of_node.get(node, ())], key=lambda each: each[0])]


def _sole_node(pool: DevicePool) -> str:
    """The only node that can have devices of the pool; "" if there are others."""
    named = {part.node for part in pool.slices}
    wider = any(device.node or device.all_nodes or device.terms for part in pool.slices for device in part.devices)
    wider = wider or any(part.all_nodes or part.terms for part in pool.slices)
    return named.pop() if len(named) == 1 and not wider else ""


class DeviceOffer(Struct, frozen=True, eq=False):
    """All devices that a node can have, published ones first. `whole`: False if a pool is incomplete or unsound, so
    that a request for all devices cannot be met."""

    devices: tuple[OfferedDevice, ...]
    counters: dict[CounterKey, int]
    whole: bool
    bound: BoundAttributes = {}
    pools: frozenset[PoolKey] = frozenset()


def pools_of(slices: Iterable[ResourceSlice]) -> tuple[DevicePool, ...]:
    """The pools of these slices, by driver and name."""
    by_pool: dict[tuple[str, str], list[ResourceSlice]] = {}
    for resource_slice in slices:
        by_pool.setdefault((resource_slice.driver, resource_slice.pool), []).append(resource_slice)
    return tuple(_device_pool(driver, name, by_pool[driver, name]) for driver, name in sorted(by_pool))


def _device_pool(driver: str, name: str, slices: list[ResourceSlice]) -> DevicePool:
    latest = max(resource_slice.generation for resource_slice in slices)
    current = tuple(
        sorted(
            (resource_slice for resource_slice in slices if resource_slice.generation == latest),
            key=lambda device: device.name,
        )
    )
    return DevicePool(
        driver,
        name,
        current,
        all(resource_slice.count == len(current) for resource_slice in current),
        _consistent(current),
    )


def _consistent(slices: tuple[ResourceSlice, ...]) -> bool:
    """Whether no device and no counter set is there twice, and each counter that is used exists."""
    devices = [device for resource_slice in slices for device in resource_slice.devices]
    sets = [counter for part in slices for counter in part.counters]
    known = {(counter_set.counter_set, counter) for counter_set in sets for counter in counter_set.counters}
    return (
        len({device.name for device in devices}) == len(devices)
        and len({counter_set.counter_set for counter_set in sets}) == len(sets)
        and all((use.counter_set, counter) in known for d in devices for use in d.consumes for counter in use.counters)
    )


def own_devices(slices: Iterable[ResourceSlice], bindings: Iterable[AttributeBinding]) -> OwnDevices:
    """What nodes of an instance type publish for themselves, by its slice templates."""
    pools = pools_of(
        ResourceSlice(
            f"{n:04}",
            resource_slice.driver,
            OWN_POOL_PREFIX + resource_slice.pool,
            devices=resource_slice.devices,
            counters=resource_slice.counters,
        )
        for n, resource_slice in enumerate(slices)
    )
    groups: dict[str, list[set[DeviceKey]]] = {}
    for binding in bindings:
        known = groups.setdefault(binding.attribute, [])
        joined = {(driver, OWN_POOL_PREFIX + pool, device) for driver, pool, device in binding.devices}
        joined.update(*(group_known for group_known in known if group_known & joined))  # bindings are transitive
        groups[binding.attribute] = [*(group_known for group_known in known if not group_known & joined), joined]
    bound = {
        attribute: {key: number for number, group in enumerate(device_groups) for key in group if len(group) > 1}
        for attribute, device_groups in groups.items()
    }
    return OwnDevices(pools, bound)


def device_offer(published: Iterable[DevicePool], own: OwnDevices, node: str, labels: Requirements) -> DeviceOffer:
    """The devices that a node with these labels can have. `own`: what only this node has; `node`: its name, "" if it is
    still to be launched."""
    devices: list[OfferedDevice] = []
    counters: dict[CounterKey, int] = {}
    whole = True
    for pool in published:
        parts = [(part, _visible(part, node, labels)) for part in pool.slices]
        seen = [device for part, visible in parts for device in _seen(pool, part, visible, node, labels)]
        if not any(visible for _, visible in parts) and not seen:
            continue
        whole = whole and pool.complete and pool.sound
        if pool.complete and pool.sound:
            counters |= pool.counters()
            devices += seen
    for pool in own.pools:
        whole = whole and pool.sound
        if pool.sound:
            counters |= pool.counters()
            devices += [_offered(pool, device, Requirements(), True) for part in pool.slices for device in part.devices]
    pools = frozenset(device.key[:2] for device in devices)
    return DeviceOffer(tuple(devices), counters, whole, own.bound, pools)


def _visible(publisher: ResourceSlice | Device, node: str, labels: Requirements) -> bool:
    """Whether the devices of a slice are there for the node, unless they say otherwise themselves (S-197). Shared
    counters are there for all devices of the pool, wherever these are."""
    if publisher.all_nodes or (publisher.node and publisher.node == node):
        return True
    terms = (Requirements.of_expressions(term.expressions) for term in publisher.terms if term.expressions)
    return any(labels.compatible(term, WELL_KNOWN) for term in terms)


def _seen(
    pool: DevicePool, part: ResourceSlice, visible: bool, node: str, labels: Requirements
) -> Iterator[OfferedDevice]:
    """The devices of a slice that the node can have. If the slice leaves it to its devices, each of them says which
    nodes."""
    for device in part.devices:
        own = device.node or device.all_nodes or device.terms
        if _visible(device, node, labels) if own else visible:
            says: ResourceSlice | Device = device if own else part
            yield _offered(pool, device, Requirements() if says.node else all_terms(says), bool(says.node))


def _offered(pool: DevicePool, device: Device, requirements: Requirements, local: bool) -> OfferedDevice:
    return OfferedDevice((pool.driver, pool.name, device.name), device, local, requirements)


def all_terms(publisher: ResourceSlice | Device) -> Requirements:
    """What a slice or device asks of nodes, all terms together (S-202)."""
    return Requirements.of_expressions(expression for term in publisher.terms for expression in term.expressions)
