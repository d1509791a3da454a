"""Finds devices of an offer that meet several claims together, depth first over claims, requests and devices (S-200).

The search is bounded: each device that it looks at is one step. What it does not find within the steps counts as not
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.devices import ALL, Attribute, Device, DeviceConstraint, DeviceRequest, ResourceClaim
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.scheduling.devices.capacity import consumed_capacity
from kerf.engine.scheduling.devices.pools import CounterKey, DeviceKey, DeviceOffer, OfferedDevice
from kerf.engine.scheduling.matching.taints import untolerated

MAX_SEARCH_STEPS = 10_000
"""Of one attempt (S-200: five seconds in the reference)."""
MAX_ALLOTTED_DEVICES = 32
"""Devices of one claim."""

Part = tuple[DeviceKey, str]
"""A device and a dimension of its capacity."""


class Usage(Struct, frozen=True):
    """What is taken already: whole devices, parts of shared ones, and counters."""

    taken: frozenset[DeviceKey] = frozenset()
    parts: Mapping[Part, int] = {}
    counters: Mapping[CounterKey, int] = {}


class Allotted(Struct, frozen=True, eq=False):
    """A device for a request of a claim (key). `consumed`: what it takes of a shared device. `admin`: the request has
    adminAccess, so it takes nothing."""

    claim: str
    offered: OfferedDevice
    consumed: Mapping[str, int]
    admin: bool = False


class Solution(Struct, frozen=True, eq=False):
    """Devices for all requests. `requirements`: what they ask of the node, beside what was asked before."""

    allotted: tuple[Allotted, ...]
    requirements: Requirements


class Matching:
    """The devices of an offer that each request can have, by the device's number."""

    def __init__(self, of: Mapping[int, Sequence[OfferedDevice]]) -> None:
        self._of = of

    def devices(self, request: DeviceRequest) -> Sequence[OfferedDevice]:
        return self._of[id(request)]


class Search:
    """One search for devices that meet some claims."""

    def __init__(self, offer: DeviceOffer, matching: Matching, usage: Usage, labels: Requirements) -> None:
        """`labels`: what is known of the node."""
        self._offer = offer
        self._matching = matching
        self._gone = set(usage.taken)
        self._parts = dict(usage.parts)
        self._counters = {key: amount - usage.counters.get(key, 0) for key, amount in offer.counters.items()}
        self._labels = labels
        self._added: list[Requirements] = [Requirements()]
        self._found: list[Allotted] = []
        self._pins: list[dict[DeviceConstraint, Attribute | _Group]] = []
        self.steps = MAX_SEARCH_STEPS

    def solve(self, claims: Sequence[ResourceClaim]) -> Solution | None:
        """The devices for the claims; None if there are none, or the search took too many steps (`steps` is 0 then)."""
        if not self._claims(claims, 0):
            return None
        return Solution(tuple(self._found), self._added[-1])

    def _claims(self, claims: Sequence[ResourceClaim], at: int) -> bool:
        if at == len(claims):
            return True
        self._pins.append({})
        if self._requests(claims, at, 0, MAX_ALLOTTED_DEVICES):
            return True
        self._pins.pop()
        return False

    def _requests(self, claims: Sequence[ResourceClaim], at: int, number: int, room: int) -> bool:
        """Find devices for the requests of a claim from this one on. `room`: how many more devices the claim may
        have."""
        requests = claims[at].requests
        if number == len(requests):
            return self._claims(claims, at + 1)
        request = requests[number]
        for alternative in request.first_of or (request,):
            every = alternative.mode == ALL
            devices = self._matching.devices(alternative)
            count = len(devices) if every else alternative.count
            if (every and not (devices and self._offer.whole)) or count > min(room, len(devices)):
                continue
            names = {request.name, f"{request.name}/{alternative.name}"} if request.first_of else {request.name}
            if self._slots(_Slot(claims, at, number, alternative, names, room - count), devices, 0, count):
                return True
        return False

    def _slots(self, slot: _Slot, devices: Sequence[OfferedDevice], start: int, left: int) -> bool:
        """Find `left` more devices, beginning with the one at `start`."""
        if left == 0:
            return self._requests(slot.claims, slot.at, slot.number + 1, slot.room)
        for index in range(start, len(devices) - left + 1):
            if self.steps <= 0:
                return False
            self.steps -= 1
            undo = self._take(slot, devices[index])
            if undo is None:
                continue
            if self._slots(slot, devices, index + 1, left - 1):
                return True
            self._give_back(undo)
        return False

    def _take(self, slot: _Slot, offered: OfferedDevice) -> _Taken | None:
        """Take a device for a claim; None if that is not possible."""
        key, device = offered.key, offered.device
        if not tolerated(slot.request, device):
            return None
        if slot.request.admin:
            return self._look_after(slot, offered)
        if key in self._gone:
            return None
        parts = consumed_capacity(device, slot.request.capacity)
        if parts is None:
            return None
        if device.shared and any(
            self._parts.get((key, name), 0) + amount > device.capacity[name].value for name, amount in parts.items()
        ):
            return None
        uses = [
            ((key[0], key[1], use.counter_set, name), n) for use in device.consumes for name, n in use.counters.items()
        ]
        held = bool(uses) and device.shared and any((key, name) in self._parts for name in parts)
        uses = [] if held else uses  # a shared device counts once, however many have it
        if any(self._counters.get(counter, 0) < amount for counter, amount in uses):
            return None
        pins = self._pinned(slot, offered)
        added = self._narrowed(offered)
        if pins is None or added is None:
            return None
        taken = _Taken(key, dict(parts) if device.shared else {}, uses, self._pins[-1])
        if not device.shared:
            self._gone.add(key)
        for name, amount in taken.parts.items():
            self._parts[key, name] = self._parts.get((key, name), 0) + amount
        for counter, amount in uses:
            self._counters[counter] -= amount
        self._pins[-1] = pins
        self._added.append(added)
        self._found.append(Allotted(slot.claims[slot.at].key, offered, taken.parts))
        return taken

    def _look_after(self, slot: _Slot, offered: OfferedDevice) -> _Taken | None:
        """A device for a request with adminAccess. It takes nothing, so it does not matter who has the device."""
        pins, added = self._pinned(slot, offered), self._narrowed(offered)
        if pins is None or added is None:
            return None
        taken = _Taken(None, {}, [], self._pins[-1])
        self._pins[-1] = pins
        self._added.append(added)
        self._found.append(Allotted(slot.claims[slot.at].key, offered, {}, admin=True))
        return taken

    def _give_back(self, taken: _Taken) -> None:
        if taken.key is not None:
            self._restore(taken.key, taken)
        self._pins[-1] = taken.pins
        self._added.pop()
        self._found.pop()

    def _restore(self, key: DeviceKey, taken: _Taken) -> None:
        self._gone.discard(key)
        for name, amount in taken.parts.items():
            self._parts[key, name] -= amount
            if not self._parts[key, name]:
                del self._parts[key, name]
        for counter, amount in taken.counters:
            self._counters[counter] += amount

    def _pinned(self, slot: _Slot, offered: OfferedDevice) -> dict[DeviceConstraint, Attribute | _Group] | None:
        """The values that matchAttribute constraints have with this device; None if they contradict those of other
        devices. For an attribute that only the node will know, the value is the group of devices that will share it."""
        pins = dict(self._pins[-1])
        for constraint in slot.claims[slot.at].constraints:
            if constraint.requests and not slot.names & set(constraint.requests):
                continue
            value: Attribute | _Group | None = offered.device.attributes.get(constraint.match)
            if value is None:
                group = self._offer.bound.get(constraint.match, {}).get(offered.key)
                if group is None:
                    return None
                value = _Group(group)
            known = pins.setdefault(constraint, value)
            if type(known) is not type(value) or known != value:
                return None
        return pins

    def _narrowed(self, offered: OfferedDevice) -> Requirements | None:
        """What is asked of the node with this device (S-202); None if no node can be all of it."""
        before = self._added[-1]
        if not len(offered.requirements):
            return before
        if before.conflicts(offered.requirements) or not self._labels.compatible(offered.requirements, WELL_KNOWN):
            return None
        return before.merged(offered.requirements)


class _Group(Struct, frozen=True):
    """Devices that will share a value that nobody knows yet. It never equals a known value (S-200)."""

    number: int


class _Slot(Struct, frozen=True, eq=False):
    """The request that needs devices: claim and request by number. `names`: how constraints may call it. `room`: how
    many devices the requests after it may have."""

    claims: Sequence[ResourceClaim]
    at: int
    number: int
    request: DeviceRequest
    names: set[str]
    room: int


class _Taken(Struct, frozen=True, eq=False):
    """What to give back when the search goes back a step. `pins`: as they were. No `key`: nothing was taken."""

    key: DeviceKey | None
    parts: dict[str, int]
    counters: list[tuple[CounterKey, int]]
    pins: dict[DeviceConstraint, Attribute | _Group]


def tolerated(request: DeviceRequest, device: Device) -> bool:
    """Whether the request may have the device in spite of its taints. Only taints with the effects NoSchedule and
    NoExecute count."""
    left = untolerated(device.taints, request.tolerations) if device.taints else ()
    return not any(taint.effect in ("NoSchedule", "NoExecute") for taint in left)


def requests_of(claims: Sequence[ResourceClaim]) -> Iterator[DeviceRequest]:
    """All requests for devices; in place of a request with alternatives, its alternatives."""
    for claim in claims:
        for request in claim.requests:
            yield from request.first_of or (request,)
