"""Find devices for a pod's claims on one node, as kube-scheduler's DynamicResources plugin does.

It is written from Kubernetes' rules and shares no search with the engine, so that it can judge plans. The engine's
reader of CEL reads the selectors: that is a language, not a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from msgspec import Struct

from kerf.adapters.simulation.scheduler.filters import NODE_NAME_FIELD, term_matches, tolerates
from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.kubernetes.devices import (
    AllocatedDevice,
    Allocation,
    Attribute,
    Capacity,
    Device,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from kerf.engine.scheduling.devices.cel_selectors import matches

Key = tuple[str, str, str]
MAX_DEVICES_PER_CLAIM = 32  # devices of a claim


class ReachableDevice(Struct, frozen=True):
    """A device that a node can reach, and the ResourceSlice that describes it."""

    key: Key
    device: Device
    part: ResourceSlice


class UsedDevices(Struct):
    """What claims have: whole devices, parts of shared ones, and parts of each pool's counters."""

    whole: set[Key]
    parts: Counter[tuple[Key, str]]
    counters: Counter[tuple[str, str, str, str]]

    def copy(self) -> UsedDevices:
        return UsedDevices(set(self.whole), self.parts.copy(), self.counters.copy())


class ChosenDevice(Struct, frozen=True):
    reachable: ReachableDevice
    consumed: dict[str, int]
    admin: bool


class DeviceAllocator:
    """Allocates devices from what there is at one moment."""

    def __init__(
        self, slices: Iterable[ResourceSlice], classes: Mapping[str, DeviceClass], claims: Iterable[ResourceClaim]
    ) -> None:
        """`claims` are all claims: those that are allocated have their devices."""
        self._classes = classes
        self._pools = _pools(slices)
        self._used = UsedDevices(set(), Counter(), Counter())
        everywhere = {(s.driver, s.pool, d.name): d for pool in self._pools for s in pool for d in s.devices}
        for claim in claims:
            for device in claim.allocation.devices if claim.allocation is not None else ():
                key = (device.driver, device.pool, device.device)
                _count_use(self._used, key, everywhere.get(key), device.consumed)

    def allocate(self, claims: list[ResourceClaim], node: Node) -> list[Allocation] | None:
        """Return an allocation for each claim, in their order, or None if they cannot all be met on this node. A claim
        that has its devices keeps them, if they can be used there."""
        open_claims = []
        for claim in claims:
            if claim.allocation is None:
                open_claims.append(claim)
            elif claim.allocation.terms and not any(term_matches(term, node) for term in claim.allocation.terms):
                return None
        reachable, complete = self._reach(node)
        budget = {
            (part.driver, part.pool, counter.counter_set, name): amount
            for pool in self._pools
            for part in pool
            for counter in part.counters
            for name, amount in counter.counters.items()
        }
        search_result = _NodeSearch(self._classes, reachable, complete, budget).claims(open_claims, self._used)
        if search_result is None:
            return None
        allocated = iter(search_result)
        return [claim.allocation or _allocation(next(allocated), node) for claim in claims]

    def _reach(self, node: Node) -> tuple[list[ReachableDevice], bool]:
        """Return the devices that the node can reach, and whether these are certainly all."""
        devices, complete = [], True
        for pool in self._pools:
            of_pool = [
                ReachableDevice((part.driver, part.pool, device.name), device, part)
                for part in pool
                for device in part.devices
                if _reaches(device if device.node or device.all_nodes or device.terms else part, node)
            ]
            whole = all(part.count == len(pool) for part in pool) and len({s.device.name for s in of_pool}) == len(
                of_pool
            )
            complete = complete and (whole or not of_pool)
            devices += of_pool if whole else []
        return devices, complete


class _NodeSearch:
    """The search for devices for one pod on one node."""

    def __init__(
        self,
        classes: Mapping[str, DeviceClass],
        reachable: list[ReachableDevice],
        complete: bool,
        budget: Mapping[tuple[str, str, str, str], int],
    ) -> None:
        self._classes, self._reachable, self._complete, self._budget = classes, reachable, complete, budget

    def claims(self, claims: list[ResourceClaim], used: UsedDevices) -> list[list[ChosenDevice]] | None:
        if not claims:
            return []
        for chosen, after in self._requests(claims[0], 0, used):
            if len(chosen) > MAX_DEVICES_PER_CLAIM or not _constraints_hold(claims[0], chosen):
                continue
            rest = self.claims(claims[1:], after)
            if rest is not None:
                return [[device for _, device in chosen], *rest]
        return None

    def _requests(
        self, claim: ResourceClaim, number: int, used: UsedDevices
    ) -> Iterator[tuple[list[tuple[str, ChosenDevice]], UsedDevices]]:
        """Give every way to meet the requests from this one on, as (request, device) pairs, with what is used then."""
        if number == len(claim.requests):
            yield [], used
            return
        request = claim.requests[number]
        for alternative in request.first_of or (request,):
            name = f"{request.name}/{alternative.name}" if request.first_of else request.name
            for devices, after in self._request(alternative, used):
                for others, last in self._requests(claim, number + 1, after):
                    yield [(name, device) for device in devices] + others, last

    def _request(self, request: DeviceRequest, used: UsedDevices) -> Iterator[tuple[list[ChosenDevice], UsedDevices]]:
        fitting = [reachable for reachable in self._reachable if self._selected(request, reachable)]
        count = len(fitting) if request.mode == "All" else request.count
        if request.mode == "All" and (not fitting or not self._complete):
            return
        for group in combinations(fitting, count):
            after = used.copy()
            chosen = [self._take(request, reachable, after) for reachable in group]
            if all(device is not None for device in chosen):
                yield [device for device in chosen if device is not None], after

    def _selected(self, request: DeviceRequest, reachable: ReachableDevice) -> bool:
        device_class = self._classes.get(request.device_class)
        if device_class is None or request.unsupported:
            return False
        try:
            return all(
                matches(selector, reachable.key[0], reachable.device)
                for selector in (*device_class.selectors, *request.selectors)
            )
        except CelError:
            return False

    def _take(self, request: DeviceRequest, reachable: ReachableDevice, used: UsedDevices) -> ChosenDevice | None:
        """Add the device to what is used, or return None if it cannot be had."""
        blocking = [taint for taint in reachable.device.taints if taint.effect in ("NoSchedule", "NoExecute")]
        if not all(tolerates(request.tolerations, taint) for taint in blocking):
            return None
        if request.admin:
            return ChosenDevice(reachable, {}, True)
        parts = _consumed_parts(reachable.device, request.capacity)
        if reachable.key in used.whole or parts is None:
            return None
        shared = reachable.device.shared
        if shared and any(
            used.parts[reachable.key, name] + amount > reachable.device.capacity[name].value
            for name, amount in parts.items()
        ):
            return None
        _count_use(used, reachable.key, reachable.device, parts if shared else {})
        if any(
            amount > self._budget.get(counter, 0)
            for counter, amount in used.counters.items()
            if _devices_of(reachable, counter)
        ):
            return None
        return ChosenDevice(reachable, parts if shared else {}, False)


def _devices_of(reachable: ReachableDevice, counter: tuple[str, str, str, str]) -> bool:
    return counter[:2] == reachable.key[:2] and any(use.counter_set == counter[2] for use in reachable.device.consumes)


def _count_use(used: UsedDevices, key: Key, device: Device | None, consumed: Mapping[str, int]) -> None:
    shared = bool(consumed) or (device is not None and device.shared)
    first = not any(amount for (other, _), amount in used.parts.items() if other == key)
    if shared:
        for name, amount in consumed.items():
            used.parts[key, name] += amount
    else:
        used.whole.add(key)
    for use in device.consumes if device is not None and first else ():
        for name, amount in use.counters.items():
            used.counters[key[0], key[1], use.counter_set, name] += amount


def _pools(slices: Iterable[ResourceSlice]) -> list[list[ResourceSlice]]:
    """Return the slices of each pool's latest generation."""
    slices_of_pool: dict[tuple[str, str], list[ResourceSlice]] = {}
    for resource_slice in sorted(slices, key=lambda s: (s.driver, s.pool, s.name)):
        newest = slices_of_pool.setdefault((resource_slice.driver, resource_slice.pool), [])
        if newest and newest[0].generation < resource_slice.generation:
            newest.clear()
        if not newest or newest[0].generation == resource_slice.generation:
            newest.append(resource_slice)
    return list(slices_of_pool.values())


def _reaches(described: ResourceSlice | Device, node: Node) -> bool:
    return (
        described.all_nodes or described.node == node.name or any(term_matches(term, node) for term in described.terms)
    )


def _constraints_hold(claim: ResourceClaim, chosen: list[tuple[str, ChosenDevice]]) -> bool:
    for constraint in claim.constraints:
        constrained = [
            chosen_device.reachable.device for name, chosen_device in chosen
            if not constraint.requests or name in constraint.requests or name.partition("/")[0] in constraint.requests
        ]  # fmt: skip
        values: list[Attribute | None] = [device.attributes.get(constraint.match) for device in constrained]
        if not constraint.match or None in values or any((type(v), v) != (type(values[0]), values[0]) for v in values):
            return False
    return True


def _consumed_parts(device: Device, asked: Mapping[str, int]) -> dict[str, int] | None:
    """Return how much of each capacity a request takes, rounded up by the device's policies, or None if a policy
    forbids it."""
    if not asked.keys() <= device.capacity.keys():
        return None
    taken = {name: _consumed_part(capacity, asked.get(name)) for name, capacity in device.capacity.items()}
    if any(amount is None or amount > device.capacity[name].value for name, amount in taken.items()):
        return None
    return {name: amount for name, amount in taken.items() if amount is not None}


def _consumed_part(capacity: Capacity, requested: int | None) -> int | None:
    if requested is None:
        return capacity.default if capacity.default is not None else capacity.value
    if capacity.values:
        return min((value for value in capacity.values if value >= requested), default=None)
    if capacity.range is None:
        return requested
    low, step = capacity.range.min, capacity.range.step or 1
    amount = low + -(-max(0, requested - low) // step) * step
    return None if capacity.range.max is not None and amount > capacity.range.max else amount


def _allocation(chosen: list[ChosenDevice], node: Node) -> Allocation:
    """Make the allocation, with the nodes that can use all of its devices: this node alone for a local device, or what
    the slices select."""
    devices = tuple(AllocatedDevice(*device.reachable.key, device.consumed) for device in chosen if not device.admin)
    reachable = [device.reachable for device in chosen]
    describing = [
        reached.device if reached.device.node or reached.device.terms else reached.part for reached in reachable
    ]
    if any(part.node for part in describing):
        return Allocation(devices, (NodeTerm(fields=(Expression(NODE_NAME_FIELD, "In", (node.name,)),)),))
    terms = [next(term for term in part.terms if term_matches(term, node)) for part in describing if part.terms]
    expressions = dict.fromkeys(expression for term in terms for expression in term.expressions)
    return Allocation(devices, (NodeTerm(tuple(expressions)),) if expressions else ())
