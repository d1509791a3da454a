"""Whether a plan's pods can have their devices: a judge that shares no code with the planner's allocation.

Every place is judged with whatever it may become: a node with what is published for it, a claim with what each of its
types will publish. All ways to hand out devices are tried, so keep problems small. Selectors are read here by pattern:
`device.driver == "…"` and `device.attributes["…"].name == "…"`, joined by `&&`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.kubernetes.devices import (
    ALL,
    AttributeBinding,
    Capacity,
    Device,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kerf.engine.model.kubernetes.pods import NodeTerm, Taint, Toleration
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.judges.labels import expression_holds

Key = tuple[str, str, str]
Where = tuple[str, Mapping[str, str]]
"""A node's name and labels."""
_TERM = re.compile(r'device\.(?:driver|attributes\["(?P<domain>[^"]+)"\]\.(?P<name>\w+)) == "(?P<value>[^"]+)"')


class Thing(Struct, frozen=True):
    """A device in its pool. `values`: its attributes, those that only a node has among them."""

    key: Key
    device: Device
    values: dict[str, object]


class Purse(Struct):
    """What is left of devices and counters."""

    whole: set[Key]
    parts: Counter[tuple[Key, str]]
    counters: Counter[tuple[str, str, str, str]]

    def copy(self) -> Purse:
        return Purse(set(self.whole), Counter(self.parts), Counter(self.counters))


def device_faults(problem: Problem, planned: Plan) -> list[str]:
    """What is wrong with the plan, as far as devices go."""
    if problem.devices is None or problem.settings.ignore_dra_requests:
        return []
    found = []
    nodes = {cluster_node.name: cluster_node for cluster_node in problem.nodes}
    for placement in planned.placements:
        node = nodes[placement.node]
        if node.initialized and not on_node(problem, node, wanted_by(problem, placement.pods)):
            found.append(f"node {node.name}: its pods cannot have their devices")
    pools = {pool.pool.name: pool.catalogue for pool in problem.pools}
    for number, opened in enumerate(planned.claims):
        wanted = wanted_by(problem, opened.pods)
        kinds = {
            instance_type.name: instance_type for instance_type in problem.catalogues[pools[opened.node_pool]].types
        }
        labels = {
            requirement.key: requirement.values[0]
            for requirement in opened.requirements
            if requirement.operator == "In" and requirement.values
        }
        found += [
            f"claim {number} as {name}: its pods cannot have their devices"
            for name in opened.instance_types
            if not on_type(problem, kinds[name], wanted, labels)
        ]
    places = [*(claim.pods for claim in planned.claims), *(placement.pods for placement in planned.placements)]
    counts = Counter(claim.key for uids in places for claim in wanted_by(problem, uids) if claim.allocation is None)
    return found + [f"{key} at {count} places" for key, count in counts.items() if count > 1]


def wanted_by(problem: Problem, uids: Iterable[str]) -> list[ResourceClaim]:
    """Each claim once, however many pods share it."""
    assert problem.devices is not None
    pods = frozenset(uids)
    keys = {key for pod in problem.pods if pod.uid in pods for key in pod.device_claims}
    return [problem.devices.claims[key] for key in sorted(keys)]


def on_node(problem: Problem, node: NodeInput, wanted: list[ResourceClaim]) -> bool:
    """Whether these claims can be met together on a node whose drivers have published."""
    assert problem.devices is not None
    where: Where = (node.name, node.labels)
    there = _published(problem, where, own=True)
    return not wanted or _met(problem, wanted, there, _budget(problem.devices.slices.values()), where)


def on_type(problem: Problem, kind: InstanceType, wanted: list[ResourceClaim], labels: Mapping[str, str]) -> bool:
    """Whether they can on a new node of this type, with these labels."""
    there = as_published(kind.slices, kind.bindings) + _published(problem, ("", labels), own=False)
    return not wanted or _met(problem, wanted, there, _budget(kind.slices), ("", labels))


# ── what there is ──────────────────────────────────────


def _published(problem: Problem, where: Where, *, own: bool) -> list[Thing]:
    assert problem.devices is not None
    slices = [resource_slice for resource_slice in problem.devices.slices.values() if own or not resource_slice.owner]
    found = []
    for resource_slice in slices:
        pool = [other for other in slices if (other.driver, other.pool) == (resource_slice.driver, resource_slice.pool)]
        latest = [other for other in pool if other.generation == max(one.generation for one in pool)]
        if resource_slice not in latest or resource_slice.count != len(latest):
            continue
        devices = tuple(one for one in resource_slice.devices if _reaches(one if _says(one) else resource_slice, where))
        found += as_published(
            [ResourceSlice(resource_slice.name, resource_slice.driver, resource_slice.pool, devices=devices)], ()
        )
    return found


def _says(device: Device) -> bool:
    return bool(device.node or device.all_nodes or device.terms)


def _reaches(given: ResourceSlice | Device, where: Where) -> bool:
    return given.all_nodes or bool(given.node and given.node == where[0]) or _some_term(given.terms, where)


def _some_term(terms: Sequence[NodeTerm], where: Where) -> bool:
    name, labels = where
    return any(
        all(expression_holds(expression, dict(labels)) for expression in term.expressions)
        and all(field.key == "metadata.name" and name in field.values for field in term.fields)
        for term in terms
    )


def as_published(slices: Iterable[ResourceSlice], bindings: Sequence[AttributeBinding]) -> list[Thing]:
    found = []
    for part in slices:
        for device in part.devices:
            key = (part.driver, part.pool, device.name)
            values: dict[str, object] = {}
            for binding in bindings:
                if key in binding.devices and len(_joined(bindings, binding.attribute, key)) > 1:
                    values[binding.attribute] = _joined(bindings, binding.attribute, key)
            found.append(Thing(key, device, {**values, **device.attributes}))
    return found


def _joined(bindings: Sequence[AttributeBinding], attribute: str, key: Key) -> frozenset[Key]:
    """All devices that share the attribute with this one, however far."""
    found = {key}
    while True:
        more = {
            one
            for binding in bindings
            if binding.attribute == attribute and found & {*binding.devices}
            for one in binding.devices
        }
        if more <= found:
            return frozenset(found)
        found |= more


def _budget(slices: Iterable[ResourceSlice]) -> Counter[tuple[str, str, str, str]]:
    return Counter(
        {
            (part.driver, part.pool, counter.counter_set, name): amount
            for part in slices
            for counter in part.counters
            for name, amount in counter.counters.items()
        }
    )


# ── whether it suffices ──────────────────────────────────────


def _met(
    problem: Problem,
    wanted: list[ResourceClaim],
    there: list[Thing],
    budget: Counter[tuple[str, str, str, str]],
    where: Where,
) -> bool:
    assert problem.devices is not None
    purse = Purse(set(), Counter(), budget)
    by_key = {device.key: device for device in there}
    for claim in problem.devices.claims.values():
        if claim.allocation is None or _frees(problem, claim):
            continue
        for device in claim.allocation.devices:
            key = (device.driver, device.pool, device.device)
            if key in by_key:
                _pay(purse, by_key[key], dict(device.consumed))
            else:
                purse.whole.add(key)
    left = []
    for claim in wanted:
        if claim.allocation is None or _frees(problem, claim):
            left.append(claim)
        elif claim.allocation.terms and not _some_term(claim.allocation.terms, where):
            return False
    return _claims(problem, left, there, purse)


def _frees(problem: Problem, claim: ResourceClaim) -> bool:
    assert problem.devices is not None
    return bool(claim.pods) and not claim.others and problem.devices.leaving.issuperset(claim.pods)


def _claims(problem: Problem, wanted: list[ResourceClaim], there: list[Thing], purse: Purse) -> bool:
    if not wanted:
        return True
    return any(
        _agree(wanted[0], taken) and _claims(problem, wanted[1:], there, rest)
        for taken, rest in _ways(problem, wanted[0], 0, there, purse)
    )


Taken = list[tuple[str, Thing]]


def _ways(
    problem: Problem, claim: ResourceClaim, number: int, there: list[Thing], purse: Purse
) -> Iterator[tuple[Taken, Purse]]:
    if number == len(claim.requests):
        yield [], purse
        return
    request = claim.requests[number]
    for alternative in request.first_of or (request,):
        fitting = [thing for thing in there if _selected(problem, alternative, thing)]
        count = len(fitting) if alternative.mode == ALL else alternative.count
        for group in combinations(fitting, count) if count else ():
            rest = purse.copy()
            if all(_afford(rest, alternative, thing) for thing in group):
                for others, last in _ways(problem, claim, number + 1, there, rest):
                    yield [(request.name, thing) for thing in group] + others, last


def _selected(problem: Problem, request: DeviceRequest, thing: Thing) -> bool:
    assert problem.devices is not None
    selectors = (*problem.devices.classes[request.device_class].selectors, *request.selectors)
    return all(_holds(term, thing) for selector in selectors for term in selector.split("&&"))


def _holds(term: str, thing: Thing) -> bool:
    found = _TERM.fullmatch(term.strip())
    assert found is not None, f"the judge cannot read {term}"
    if found["domain"] is None:
        return thing.key[0] == found["value"]
    return thing.device.attributes.get(f"{found['domain']}/{found['name']}") == found["value"]


def _afford(purse: Purse, request: DeviceRequest, thing: Thing) -> bool:
    if any(taint.effect != "None" and not _tolerated(taint, request.tolerations) for taint in thing.device.taints):
        return False
    if request.admin:
        return True
    asked = _asked(thing.device, request.capacity)
    if asked is None or thing.key in purse.whole:
        return False
    _pay(purse, thing, asked if thing.device.shared else {})
    full = any(purse.parts[thing.key, name] > given.value for name, given in thing.device.capacity.items())
    return not full and all(amount >= 0 for amount in purse.counters.values())


def _pay(purse: Purse, thing: Thing, consumed: dict[str, int]) -> None:
    known = any(key == thing.key and amount for (key, _), amount in purse.parts.items())
    if thing.device.shared:
        for name, amount in consumed.items():
            purse.parts[thing.key, name] += amount
    else:
        purse.whole.add(thing.key)
    for use in () if known else thing.device.consumes:
        for name, amount in use.counters.items():
            purse.counters[thing.key[0], thing.key[1], use.counter_set, name] -= amount


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
        for toleration in tolerations
    )


def _asked(device: Device, wanted: Mapping[str, int]) -> dict[str, int] | None:
    if set(wanted) - set(device.capacity):
        return None
    found = {name: _rounded(given, wanted.get(name)) for name, given in device.capacity.items()}
    return None if None in found.values() else {name: amount for name, amount in found.items() if amount is not None}


def _rounded(given: Capacity, wanted: int | None) -> int | None:
    if wanted is None:
        return given.value if given.default is None else given.default
    allowed = list(given.values) or [wanted]
    if given.range is not None:
        last = given.range.max if given.range.max is not None else given.value
        allowed = (
            list(range(given.range.min, last + 1, given.range.step))
            if given.range.step
            else [max(wanted, given.range.min)]
        )
        allowed = [value for value in allowed if value <= last]
    enough = [value for value in allowed if wanted <= value <= given.value]
    return min(enough) if enough else None


def _agree(claim: ResourceClaim, taken: Taken) -> bool:
    if len(taken) > 32:
        return False
    for constraint in claim.constraints:
        meant = [thing for name, thing in taken if not constraint.requests or name in constraint.requests]
        values = [thing.values.get(constraint.match) for thing in meant]
        if None in values or len({(type(value), value) for value in values}) > 1:
            return False
    return True
