"""What a type has to pass to be launched for a class: a list of hurdles, each a set of types (a bitset).

Taints, one per required label, limits, offerings, one per resource, host ports, devices, volumes, topology. The search
itself keeps none of this; it is worked out after the fact, for reasons, funnels and near misses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue
from kerf.engine.scheduling.launchable.daemons import DaemonGroup
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT, PLANNING_ONLY_LABELS, NarrowedTemplate, Template
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.requirements import Conflict, Requirements
from kerf.engine.scheduling.matching.taints import taint_text, untolerated
from kerf.engine.scheduling.pods.pod_class import PodClass

LIMITS, REQUIREMENT, OFFERING, LEFT_OUT, UNAVAILABLE = "limits", "requirement", "offering", "left-out", "unavailable"
RESOURCE, HOST_PORTS, MIN_VALUES, TAINT, DEVICES = "resource", "host-ports", "min-values", "taint", "devices"
VOLUMES, TOPOLOGY = "volumes", "topology"
ON_OFFER = (OFFERING, LEFT_OUT, UNAVAILABLE)
NEW_HOST = -1
"""The hostname of a claim that is not opened: nothing is counted there."""


class Hurdle(Struct, frozen=True):
    """`passed`: the types that take it; `daemons`: what daemons take of a resource besides, at the most."""

    what: str
    passed: int
    key: str = ""
    wanted: str = ""
    daemons: int = 0


def hurdles_of(template: Template, wanted: PodClass) -> list[Hurdle]:
    """In the order in which a reader asks; `place_hurdles` come after them. A taint or a label that the NodePool itself
    rules out stops every type; what its limits leave comes after what the pod and the NodePool can do for each other at
    all."""
    requirements = template.state.requirements.merged(wanted.requirements)
    untolerable = untolerated(template.pool.taints, wanted.tolerations)
    conflicting = _conflicts(template, wanted)
    return [
        *(Hurdle(TAINT, 0, taint.key, taint_text(taint)) for taint in untolerable),
        *(Hurdle(REQUIREMENT, 0, each.key, str(each.incoming)) for each in conflicting),
        *requirement_hurdles(template.catalogue, requirements.without(each.key for each in conflicting)),
        *_limit_hurdles(template),
        *offering_hurdles(template, template.at(requirements)),
        *_resource_hurdles(template, wanted),
        *_device_hurdles(template, wanted),
    ]


def _conflicts(template: Template, wanted: PodClass) -> tuple[Conflict, ...]:
    following = template.step(template.state, wanted.requirements)
    return following if isinstance(following, tuple) else ()


def _limit_hurdles(template: Template) -> Iterator[Hurdle]:
    for name, amount in template.remaining.items():
        levels = template.catalogue.capacity.get(name)
        if name == NODES_LIMIT:
            yield Hurdle(LIMITS, template.catalogue.everything if amount >= 1 else 0, name)
        elif levels is not None:
            yield Hurdle(LIMITS, levels.at_most(amount), name, str(amount))


def requirement_hurdles(catalogue: CompiledCatalogue, requirements: Requirements) -> Iterator[Hurdle]:
    for each in requirements:
        if each.key not in PLANNING_ONLY_LABELS:
            yield Hurdle(REQUIREMENT, catalogue.admitting(each), each.key, str(each))


def offering_hurdles(template: Template, state: NarrowedTemplate) -> Iterator[Hurdle]:
    """Types that the cloud does not offer this way, then those that this try of a search leaves out, then those of
    which there was no capacity when they were asked for. Types that are listed and not on offer (A-200) stop at the
    first of these alone: the cloud may offer them again."""
    listed = on_offer = there = 0
    for number in state.slots:
        on_offer |= template.slots[number].types
        there |= template.available[number]
        for each in template.slots[number].prices:
            listed |= 1 << each
    yield Hurdle(OFFERING, on_offer)
    left_out = template.left_out()
    yield Hurdle(LEFT_OUT, template.catalogue.everything & ~left_out)
    yield Hurdle(UNAVAILABLE, there | left_out | listed & ~on_offer)


def _resource_hurdles(template: Template, wanted: PodClass) -> Iterator[Hurdle]:
    """Types that the NodePool does not allow are measured without daemons: a near miss may be about them."""
    outside = template.catalogue.everything & ~sum(group.types for group in template.groups)
    groups = [*template.groups, DaemonGroup(outside, {}, ())]
    for name in sorted({*wanted.requests, *(name for group in groups for name in group.requests)}):
        levels = template.catalogue.allocatable.get(name)
        passed = 0
        for group in groups:
            amount = wanted.requests.get(name, 0) + group.requests.get(name, 0)
            enough = levels.at_least(amount) if levels else template.catalogue.everything if amount <= 0 else 0
            passed |= group.types & enough
        besides = max(group.requests.get(name, 0) for group in groups)
        yield Hurdle(RESOURCE, passed, name, str(wanted.requests.get(name, 0)), besides)
    if wanted.ports:
        free = sum(group.types for group in groups if not port_conflicts(wanted.ports, group.ports))
        yield Hurdle(HOST_PORTS, free, "", " ".join(port_names(wanted)))


def _device_hurdles(template: Template, wanted: PodClass) -> Iterator[Hurdle]:
    if wanted.devices is not None:
        yield Hurdle(DEVICES, wanted.devices.suiting(template), "", " ".join(wanted.devices.names))


def port_names(wanted: PodClass) -> list[str]:
    return [f"{each.port}/{each.protocol}" for each in sorted(wanted.ports)]


def passing(types: int, hurdles: Iterable[Hurdle], *what: str) -> int:
    """Those of the types that pass all hurdles of these kinds, of all kinds if none is named."""
    for hurdle in hurdles:
        if not what or hurdle.what in what:
            types &= hurdle.passed
    return types


# ── where ──────────────────────────────────────


def place_hurdles(template: Template, wanted: PodClass) -> Iterator[Hurdle]:
    """Types that cannot be had where the pod's volumes are, then those that cannot where topology lets it go. Where
    that leaves none it is the place, whatever the type."""
    demand, base = wanted.demand, template.step(template.state, wanted.requirements)
    if not isinstance(base, NarrowedTemplate) or not base.viable:
        return
    there = base.viable
    if demand.alternatives:
        reached = [template.step(base, each) for each in demand.alternatives]
        there = _any_of(state for state in reached if isinstance(state, NarrowedTemplate))
        allowed = " or ".join(_words(each) for each in demand.alternatives)
        yield Hurdle(VOLUMES, _besides(template, base.viable, there), "", allowed)
    if demand.asks and there:
        left = _any_of(state for _, state in demand.options(template, template.state))
        passed = _besides(template, there, left) if demand.allows_host(NEW_HOST) else 0
        yield Hurdle(TOPOLOGY, passed, "", " ".join(sorted({each.key for each in (*demand.host_rules, *demand.rules)})))


def _any_of(states: Iterable[NarrowedTemplate]) -> int:
    found = 0
    for state in states:
        found |= state.viable
    return found


def _besides(template: Template, asked: int, left: int) -> int:
    """All types but those that were asked about and are not left; none if none of them is."""
    return template.catalogue.everything & ~(asked & ~left) if left else 0


def _words(requirements: Requirements) -> str:
    return " and ".join(str(each) for each in requirements)
