"""How kube-scheduler's DynamicResources plugin finds devices for a pod's claims on one node, restated on its own.

Written from Kubernetes' rules and without the engine's search, so that it can also judge a plan. Selectors are read by
the engine's reader of CEL: that is a language, not a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from msgspec import Struct

from kerf.adapters.simulation.scheduler.filters import NODE_NAME_FIELD, term_matches, tolerates
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
from kerf.engine.scheduling.devices.errors import SelectorError

Key = tuple[str, str, str]
MOST = 32  # devices of a claim


class Seen(Struct, frozen=True):
    """A device that a node can reach, and where it is described."""

    key: Key
    device: Device
    part: ResourceSlice


class Used(Struct):
    """What other claims have: whole devices, parts of shared ones, and of each pool's counters."""

    whole: set[Key]
    parts: Counter[tuple[Key, str]]
    counters: Counter[tuple[str, str, str, str]]

    def copy(self) -> Used:
        return Used(set(self.whole), self.parts.copy(), self.counters.copy())


class Chosen(Struct, frozen=True):
    seen: Seen
    consumed: dict[str, int]
    admin: bool


class Allocator:
    """What there is, at one moment."""

    def __init__(
        self, slices: Iterable[ResourceSlice], classes: Mapping[str, DeviceClass], claims: Iterable[ResourceClaim]
    ) -> None:
        """`claims`: all of them; those that are allocated have their devices."""
        self._classes = classes
        self._pools = _pools(slices)
        self._used = Used(set(), Counter(), Counter())
        everywhere = {(s.driver, s.pool, d.name): d for pool in self._pools for s in pool for d in s.devices}
        for claim in claims:
            for each in claim.allocation.devices if claim.allocation is not None else ():
                key = (each.driver, each.pool, each.device)
                _use(self._used, key, everywhere.get(key), each.consumed)

    def allocate(self, claims: list[ResourceClaim], node: Node) -> list[Allocation] | None:
        """For each of the claims, in their order; None if they cannot all be met on this node. One that has its devices
        keeps them, if they can be used there."""
        open_claims = []
        for claim in claims:
            if claim.allocation is None:
                open_claims.append(claim)
            elif claim.allocation.terms and not any(term_matches(term, node) for term in claim.allocation.terms):
                return None
        seen, complete = self._reach(node)
        budget = {
            (part.driver, part.pool, each.counter_set, name): amount
            for pool in self._pools
            for part in pool
            for each in part.counters
            for name, amount in each.counters.items()
        }
        found = _Attempt(self._classes, seen, complete, budget).claims(open_claims, self._used)
        if found is None:
            return None
        made = iter(found)
        return [claim.allocation or _allocation(next(made), node) for claim in claims]

    def _reach(self, node: Node) -> tuple[list[Seen], bool]:
        """The devices that the node can reach, and whether that is certainly all of them."""
        found, complete = [], True
        for pool in self._pools:
            there = [
                Seen((part.driver, part.pool, each.name), each, part)
                for part in pool
                for each in part.devices
                if _reaches(each if each.node or each.all_nodes or each.terms else part, node)
            ]
            whole = all(part.count == len(pool) for part in pool) and len({s.device.name for s in there}) == len(there)
            complete = complete and (whole or not there)
            found += there if whole else []
        return found, complete


class _Attempt:
    """One node, one pod."""

    def __init__(
        self,
        classes: Mapping[str, DeviceClass],
        seen: list[Seen],
        complete: bool,
        budget: Mapping[tuple[str, str, str, str], int],
    ) -> None:
        self._classes, self._seen, self._complete, self._budget = classes, seen, complete, budget

    def claims(self, claims: list[ResourceClaim], used: Used) -> list[list[Chosen]] | None:
        if not claims:
            return []
        for chosen, after in self._requests(claims[0], 0, used):
            if len(chosen) > MOST or not _constraints_hold(claims[0], chosen):
                continue
            rest = self.claims(claims[1:], after)
            if rest is not None:
                return [[each for _, each in chosen], *rest]
        return None

    def _requests(
        self, claim: ResourceClaim, number: int, used: Used
    ) -> Iterator[tuple[list[tuple[str, Chosen]], Used]]:
        """Every way to meet the requests from this one on: (request, device) pairs, and what is used then."""
        if number == len(claim.requests):
            yield [], used
            return
        request = claim.requests[number]
        for each in request.first_of or (request,):
            name = f"{request.name}/{each.name}" if request.first_of else request.name
            for devices, after in self._request(each, used):
                for others, last in self._requests(claim, number + 1, after):
                    yield [(name, device) for device in devices] + others, last

    def _request(self, request: DeviceRequest, used: Used) -> Iterator[tuple[list[Chosen], Used]]:
        fitting = [each for each in self._seen if self._selected(request, each)]
        count = len(fitting) if request.mode == "All" else request.count
        if request.mode == "All" and (not fitting or not self._complete):
            return
        for group in combinations(fitting, count):
            after = used.copy()
            chosen = [self._take(request, each, after) for each in group]
            if all(each is not None for each in chosen):
                yield [each for each in chosen if each is not None], after

    def _selected(self, request: DeviceRequest, seen: Seen) -> bool:
        given = self._classes.get(request.device_class)
        if given is None or request.unsupported:
            return False
        try:
            return all(matches(each, seen.key[0], seen.device) for each in (*given.selectors, *request.selectors))
        except SelectorError:
            return False

    def _take(self, request: DeviceRequest, seen: Seen, used: Used) -> Chosen | None:
        """Adds the device to what is used; None if it cannot be had."""
        hard = [taint for taint in seen.device.taints if taint.effect in ("NoSchedule", "NoExecute")]
        if not all(tolerates(request.tolerations, taint) for taint in hard):
            return None
        if request.admin:
            return Chosen(seen, {}, True)
        parts = _parts(seen.device, request.capacity)
        if seen.key in used.whole or parts is None:
            return None
        shared = seen.device.shared
        if shared and any(
            used.parts[seen.key, name] + amount > seen.device.capacity[name].value for name, amount in parts.items()
        ):
            return None
        _use(used, seen.key, seen.device, parts if shared else {})
        if any(
            amount > self._budget.get(counter, 0) for counter, amount in used.counters.items() if _of(seen, counter)
        ):
            return None
        return Chosen(seen, parts if shared else {}, False)


def _of(seen: Seen, counter: tuple[str, str, str, str]) -> bool:
    return counter[:2] == seen.key[:2] and any(use.counter_set == counter[2] for use in seen.device.consumes)


def _use(used: Used, key: Key, device: Device | None, consumed: Mapping[str, int]) -> None:
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
    """The slices of each pool's latest generation."""
    found: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in sorted(slices, key=lambda s: (s.driver, s.pool, s.name)):
        known = found.setdefault((each.driver, each.pool), [])
        if known and known[0].generation < each.generation:
            known.clear()
        if not known or known[0].generation == each.generation:
            known.append(each)
    return list(found.values())


def _reaches(given: ResourceSlice | Device, node: Node) -> bool:
    return given.all_nodes or given.node == node.name or any(term_matches(term, node) for term in given.terms)


def _constraints_hold(claim: ResourceClaim, chosen: list[tuple[str, Chosen]]) -> bool:
    for each in claim.constraints:
        meant = [
            one.seen.device for name, one in chosen
            if not each.requests or name in each.requests or name.partition("/")[0] in each.requests
        ]  # fmt: skip
        values: list[Attribute | None] = [device.attributes.get(each.match) for device in meant]
        if not each.match or None in values or any((type(v), v) != (type(values[0]), values[0]) for v in values):
            return False
    return True


def _parts(device: Device, asked: Mapping[str, int]) -> dict[str, int] | None:
    """How much of each dimension a request takes, rounded up as the device's policies say; None if one forbids it."""
    if not asked.keys() <= device.capacity.keys():
        return None
    taken = {name: _part(given, asked.get(name)) for name, given in device.capacity.items()}
    if any(amount is None or amount > device.capacity[name].value for name, amount in taken.items()):
        return None
    return {name: amount for name, amount in taken.items() if amount is not None}


def _part(given: Capacity, asked: int | None) -> int | None:
    if asked is None:
        return given.default if given.default is not None else given.value
    if given.values:
        return min((each for each in given.values if each >= asked), default=None)
    if given.range is None:
        return asked
    low, step = given.range.min, given.range.step or 1
    amount = low + -(-max(0, asked - low) // step) * step
    return None if given.range.max is not None and amount > given.range.max else amount


def _allocation(chosen: list[Chosen], node: Node) -> Allocation:
    """With the nodes that can use all of it: this one alone if a device is its own, else what slices select."""
    devices = tuple(AllocatedDevice(*each.seen.key, each.consumed) for each in chosen if not each.admin)
    says = [each.seen.device if each.seen.device.node or each.seen.device.terms else each.seen.part for each in chosen]
    if any(each.node for each in says):
        return Allocation(devices, (NodeTerm(fields=(Expression(NODE_NAME_FIELD, "In", (node.name,)),)),))
    terms = [next(term for term in each.terms if term_matches(term, node)) for each in says if each.terms]
    expressions = dict.fromkeys(expression for term in terms for expression in term.expressions)
    return Allocation(devices, (NodeTerm(tuple(expressions)),) if expressions else ())
