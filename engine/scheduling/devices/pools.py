"""Pools of devices: which published slices count, and which of their devices a node could have (S-196, S-197)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.devices import Device, ResourceSlice
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.scheduling.requirements import Requirements

DeviceKey = tuple[str, str, str]
"""Driver, pool and name."""
CounterKey = tuple[str, str, str, str]
"""Driver, pool, counter set and counter."""


OWN = "own:"
"""Before the pool's name in keys of devices that come of slice templates: no published pool's name holds a colon."""


class Offered(Struct, frozen=True, eq=False):
    """A device that a node could have. `local`: it comes with the node (of a slice template, or of a slice of this
    node); `requirements`: what else its slice says of nodes, all terms at once."""

    key: DeviceKey
    device: Device
    local: bool
    requirements: Requirements

    @property
    def driver(self) -> str:
        return self.key[0]


class Pool(Struct, frozen=True, eq=False):
    """The slices of the highest generation, by name. `complete`: all of them are there; `sound`: they do not contradict
    themselves."""

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...]
    complete: bool
    sound: bool

    def counters(self) -> dict[CounterKey, int]:
        return {
            (self.driver, self.name, each.counter_set, counter): amount
            for part in self.slices
            for each in part.counters
            for counter, amount in each.counters.items()
        }


class Offer(Struct, frozen=True, eq=False):
    """All that a node could have, published devices first. `whole`: False if a pool of it is incomplete or unsound, so
    that nobody can say what all devices are."""

    devices: tuple[Offered, ...]
    counters: dict[CounterKey, int]
    whole: bool


def pools_of(slices: Iterable[ResourceSlice]) -> tuple[Pool, ...]:
    """By driver and name."""
    found: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        found.setdefault((each.driver, each.pool), []).append(each)
    return tuple(_pool(driver, name, found[driver, name]) for driver, name in sorted(found))


def _pool(driver: str, name: str, slices: list[ResourceSlice]) -> Pool:
    latest = max(each.generation for each in slices)
    current = tuple(sorted((each for each in slices if each.generation == latest), key=lambda each: each.name))
    return Pool(driver, name, current, all(each.count == len(current) for each in current), _sound(current))


def _sound(slices: tuple[ResourceSlice, ...]) -> bool:
    """No device and no counter set twice, and no counter that there is not."""
    devices = [device for each in slices for device in each.devices]
    sets = [each for part in slices for each in part.counters]
    known = {(each.counter_set, counter) for each in sets for counter in each.counters}
    return (
        len({each.name for each in devices}) == len(devices)
        and len({each.counter_set for each in sets}) == len(sets)
        and all((use.counter_set, counter) in known for d in devices for use in d.consumes for counter in use.counters)
    )


def offer(published: Iterable[Pool], own: Iterable[Pool], node: str, labels: Requirements) -> Offer:
    """What a node with these labels could have. `own`: the pools that only it has, of slice templates; `node`: its
    name, "" for one that is still to be launched."""
    devices: list[Offered] = []
    counters: dict[CounterKey, int] = {}
    whole = True
    for pool in published:
        seen = [each for each in pool.slices if _visible(each, node, labels)]
        if not seen:
            continue
        whole = whole and pool.complete and pool.sound
        if pool.complete and pool.sound:
            counters |= pool.counters()
            devices += [each for part in seen for each in _devices(pool, part, local=bool(part.node))]
    for pool in own:
        whole = whole and pool.sound
        if pool.sound:
            counters |= pool.counters()
            devices += [each for part in pool.slices for each in _devices(pool, part, local=True)]
    return Offer(tuple(devices), counters, whole)


def _visible(given: ResourceSlice, node: str, labels: Requirements) -> bool:
    if given.all_nodes or given.counters or (given.node and given.node == node):
        return True
    terms = (Requirements.of_expressions(each.expressions) for each in given.terms if each.expressions)
    return any(labels.compatible(each, WELL_KNOWN) for each in terms)


def _devices(pool: Pool, part: ResourceSlice, local: bool) -> list[Offered]:
    wanted = Requirements() if local else all_terms(part)
    return [Offered((pool.driver, pool.name, each.name), each, local, wanted) for each in part.devices if each.usable]


def all_terms(given: ResourceSlice) -> Requirements:
    """What a slice says of nodes, its terms taken together (S-202)."""
    return Requirements.of_expressions(each for term in given.terms for each in term.expressions)
