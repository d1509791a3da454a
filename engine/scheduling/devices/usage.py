"""Which devices are taken: those of allocated claims (S-198), and those given away in this pass (S-203)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from kerf.engine.model.kubernetes.devices import Device, DeviceFacts, ResourceClaim
from kerf.engine.scheduling.devices.pools import CounterKey, DeviceKey, DevicePool, PoolKey
from kerf.engine.scheduling.devices.search import Allotted, Part, Solution, Usage

_Key = TypeVar("_Key")
Host = str | int
"""An existing node by its name, a claim of this pass by its index."""


class GrantedClaim(Protocol):
    """The claim of this pass on which devices were given. `types`: those that it can still become."""

    types: int


class DeviceGrant(Struct, frozen=True, eq=False):
    """The devices that the claims of one pod were given. `by_types`: each solution with the types that it is for (all
    types, on an existing node). `place`: the claim, which may have lost some of the types since."""

    host: Host
    place: GrantedClaim | None
    by_types: tuple[tuple[int, Solution], ...]

    def solutions(self) -> list[Solution]:
        """The solutions for types that the claim can still become."""
        return [solution for types, solution in self.by_types if self.place is None or types & self.place.types]


class Ledger:
    """Who has which devices. `pools`: all published pools; `asked`: as in `Devices`."""

    def __init__(self, facts: DeviceFacts, pools: Iterable[DevicePool], asked: frozenset[str]) -> None:
        devices: dict[DeviceKey, Device] = {
            (pool.driver, pool.name, device.name): device
            for pool in pools
            for part in pool.slices
            for device in part.devices
        }
        sums: dict[PoolKey, _Sums] = {}
        for key in sorted(facts.claims):
            claim = facts.claims[key]
            if claim.allocation is None or freed(claim, facts.leaving) or (released(claim) and key not in asked):
                continue
            for device in claim.allocation.devices:
                where = (device.driver, device.pool, device.device)
                sums.setdefault(where[:2], _Sums()).add(where, devices.get(where), device.consumed)
        self._allocated = {pool: pool_sums.usage() for pool, pool_sums in sums.items()}
        self._by_host: dict[Host, list[DeviceGrant]] = {}
        self._abroad: list[DeviceGrant] = []  # holds devices that other hosts could have, too

    def give(self, grant: DeviceGrant) -> None:
        self._by_host.setdefault(grant.host, []).append(grant)
        if any(
            not allotted_device.offered.local for _, solution in grant.by_types for allotted_device in solution.allotted
        ):
            self._abroad.append(grant)

    def given(self, host: Host) -> Sequence[DeviceGrant]:
        return self._by_host.get(host, ())

    def usage(self, host: Host, group: int, pools: Iterable[PoolKey]) -> Usage:
        """What is taken of these pools, seen from this host, if it becomes a type of the group with this number."""
        sums = _Sums()
        for pool in pools:
            if pool in self._allocated:
                sums.join(self._allocated[pool])
        for grant in self._by_host.get(host, ()):
            types = [solution for mask, solution in grant.by_types if mask >> group & 1]
            sums.add_all(allotted_device for solution in types for allotted_device in solution.allotted)
        for grant in self._abroad:
            if grant.host != host:
                sums.add_most([solution.allotted for solution in grant.solutions()])
        return sums.usage()


def freed(claim: ResourceClaim, leaving: frozenset[str]) -> bool:
    """Whether only pods that are leaving their nodes use the claim (S-198). It is then allocated anew."""
    return bool(claim.pods) and not claim.others and leaving.issuperset(claim.pods)


def released(claim: ResourceClaim) -> bool:
    """Whether no pod uses the claim any more (S-198). Its controller is about to take the allocation back."""
    return not claim.pods and not claim.others


class _Sums:
    """Adds up usage."""

    def __init__(self) -> None:
        self._taken: set[DeviceKey] = set()
        self._parts: dict[Part, int] = {}
        self._counters: dict[CounterKey, int] = {}
        self._shared: set[DeviceKey] = set()

    def join(self, other: Usage) -> None:
        """Add what is taken of another pool."""
        self._taken.update(other.taken)
        self._parts.update(other.parts)
        self._counters.update(other.counters)
        self._shared.update(key for key, _ in other.parts)

    def usage(self) -> Usage:
        return Usage(frozenset(self._taken), self._parts, self._counters)

    def add(self, key: DeviceKey, device: Device | None, consumed: Mapping[str, int]) -> None:
        """Add one device. If nothing is known of it any more, and nothing of its parts, it counts as taken whole."""
        seen = key in self._shared
        if consumed or (device is not None and device.shared):
            self._shared.add(key)
            for name, amount in consumed.items():
                self._parts[key, name] = self._parts.get((key, name), 0) + amount
        else:
            self._taken.add(key)
        for use in device.consumes if device is not None and not seen else ():
            for name, amount in use.counters.items():
                counter = (key[0], key[1], use.counter_set, name)
                self._counters[counter] = self._counters.get(counter, 0) + amount

    def add_all(self, allotted: Iterable[Allotted]) -> None:
        for allotted_device in allotted:
            if allotted_device.admin:
                continue
            self.add(allotted_device.offered.key, allotted_device.offered.device, allotted_device.consumed)

    def add_most(self, solutions: Iterable[tuple[Allotted, ...]]) -> None:
        """Add what solutions take of devices that other hosts can have too. Of capacity and counters it adds the most
        that any one solution takes."""
        parts: dict[Part, int] = {}
        counters: dict[CounterKey, int] = {}
        for allotted in solutions:
            one = _Sums()
            one.add_all(allotted_device for allotted_device in allotted if not allotted_device.offered.local)
            self._taken |= one._taken
            self._shared |= one._shared
            _take_largest(parts, one._parts)
            _take_largest(counters, one._counters)
        for part, amount in parts.items():
            self._parts[part] = self._parts.get(part, 0) + amount
        for counter, amount in counters.items():
            self._counters[counter] = self._counters.get(counter, 0) + amount


def _take_largest(into: dict[_Key, int], amounts: Mapping[_Key, int]) -> None:
    for key, amount in amounts.items():
        into[key] = max(into.get(key, 0), amount)
