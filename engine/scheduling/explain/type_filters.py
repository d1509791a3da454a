"""What an instance type must pass to be launched for a class: a list of filters, each a set of types (a bitset).

There are filters for taints, for each required label, limits, offerings, each resource, host ports, devices, volumes
and topology. The search itself keeps none of them. They are worked out after the fact, for reasons, funnels and near
misses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Conflict, Requirements
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.reasons import ReasonCode
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue
from kerf.engine.scheduling.launchable.daemons import DaemonGroup
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT, PLANNING_ONLY_LABELS, NarrowedTemplate, Template
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.taints import taint_text, untolerated
from kerf.engine.scheduling.pods.pod_class import PodClass


class FilterKind(ReasonCode):
    """What a filter looks at: with the sentence why it rules types out, and the single change that would let more types
    through. The change is "" where nobody can make one: the search itself left the types out, or volumes would have to
    move."""

    TAINT = "taint", "the taint {wanted}, which is not tolerated", "if the pods tolerated the taint {key}"
    REQUIREMENT = "requirement", "not {wanted}", "if {side} allowed {values} for {key}"
    WITHHELD = "withheld", "nodes came without {wanted}", "if its nodes had the label {key}"
    LIMITS = (
        "limits",
        "more {key} than the NodePool's limits leave",
        "if the NodePool's limits left {short} more {key}",
    )
    OFFERING = "offering", "not on offer in the zones and capacity types that are left", "if they were on offer"
    LEFT_OUT = "left-out", "left out by the search for a cheaper plan when it opened this node", ""
    UNAVAILABLE = "unavailable", "no capacity when last tried", "if there were capacity again"
    RESOURCE = "resource", "too little {key} for {wanted}", "if the pods asked for {short} less {key}"
    HOST_PORTS = "host-ports", "a DaemonSet takes the host ports {wanted}", "if the host ports were free"
    DEVICES = "devices", "not the devices for {wanted}", "if they brought the devices"
    MIN_VALUES = "min-values", "fewer values than minValues asks for", "if minValues asked for less"
    VOLUMES = "volumes", "not where the pods' volumes are: {wanted}", ""
    TOPOLOGY = (
        "topology",
        "no place that spread and affinity over {wanted} allow",
        "if {side} over {key} allowed {values}",
    )

    def __init__(self, code: str, sentence: str, change: str) -> None:
        self.change = change


ON_OFFER = (FilterKind.OFFERING, FilterKind.LEFT_OUT, FilterKind.UNAVAILABLE)
NEW_CLAIM_HOST = -1
"""The hostname of a claim that is not opened: nothing is counted there."""


class TypeFilter(Struct, frozen=True):
    """One filter. `passed`: the types that pass it. `daemons`: the most that daemons take of a resource besides."""

    kind: FilterKind
    passed: int
    key: str = ""
    wanted: str = ""
    daemons: int = 0


def type_filters(template: Template, pod_class: PodClass) -> list[TypeFilter]:
    """The filters, in the order in which a reader asks; `place_filters` come after them. A taint or label that the
    NodePool itself rules out stops every type. Limits come after what pod and NodePool can do for each other at all."""
    requirements = template.base.requirements.merged(pod_class.requirements)
    untolerable = untolerated(template.pool.taints, pod_class.tolerations)
    conflicting = _conflicts(template, pod_class)
    return [
        *(TypeFilter(FilterKind.TAINT, 0, taint.key, taint_text(taint)) for taint in untolerable),
        *(TypeFilter(FilterKind.REQUIREMENT, 0, conflict.key, str(conflict.incoming)) for conflict in conflicting),
        *requirement_filters(template.catalogue, requirements.without(conflict.key for conflict in conflicting)),
        *withheld_filters(template, requirements),
        *_limit_filters(template),
        *offering_filters(template, template.at(requirements)),
        *_resource_filters(template, pod_class),
        *_device_filters(template, pod_class),
    ]


def _conflicts(template: Template, pod_class: PodClass) -> tuple[Conflict, ...]:
    """All of them: labels that the NodePool does not have hide those that it has otherwise (S-17)."""
    found: list[Conflict] = []
    asked = pod_class.requirements
    while isinstance(conflicts := template.step(template.base, asked), tuple):
        found += conflicts
        asked = asked.without(conflict.key for conflict in conflicts)
    return tuple(found)


def _limit_filters(template: Template) -> Iterator[TypeFilter]:
    for name, amount in template.remaining.items():
        levels = template.catalogue.capacity.get(name)
        if name == NODES_LIMIT:
            yield TypeFilter(FilterKind.LIMITS, template.catalogue.everything if amount >= 1 else 0, name)
        elif levels is not None:
            yield TypeFilter(FilterKind.LIMITS, levels.at_most(amount), name, str(amount))


def requirement_filters(catalogue: CompiledCatalogue, requirements: Requirements) -> Iterator[TypeFilter]:
    for requirement in requirements:
        if requirement.key not in PLANNING_ONLY_LABELS:
            yield TypeFilter(
                FilterKind.REQUIREMENT, catalogue.admitting(requirement), requirement.key, str(requirement)
            )


def withheld_filters(template: Template, requirements: Requirements) -> Iterator[TypeFilter]:
    """What launches did not give stops every type."""
    for requirement in template.withheld(requirements):
        yield TypeFilter(FilterKind.WITHHELD, 0, requirement.key, str(requirement))


def offering_filters(template: Template, narrowed: NarrowedTemplate) -> Iterator[TypeFilter]:
    """Three filters: types that the cloud does not offer this way; types that this try of the search leaves out; types
    without capacity when they were last asked for. Types that are listed but not on offer (A-200) stop only at the
    first: the cloud may offer them again."""
    listed = on_offer = there = 0
    for number in narrowed.slots:
        on_offer |= template.slots[number].types
        there |= template.available[number]
        for price in template.slots[number].prices:
            listed |= 1 << price
    yield TypeFilter(FilterKind.OFFERING, on_offer)
    left_out = template.left_out()
    yield TypeFilter(FilterKind.LEFT_OUT, template.catalogue.everything & ~left_out)
    yield TypeFilter(FilterKind.UNAVAILABLE, there | left_out | listed & ~on_offer)


def _resource_filters(template: Template, pod_class: PodClass) -> Iterator[TypeFilter]:
    """The filters for resources and host ports. Types that the NodePool does not allow are measured without daemons,
    because a near miss may be about them."""
    outside = template.catalogue.everything & ~sum(group.types for group in template.groups)
    groups = [*template.groups, DaemonGroup(outside, {}, ())]
    for name in sorted({*pod_class.requests, *(name for group in groups for name in group.requests)}):
        levels = template.catalogue.allocatable.get(name)
        passed = 0
        for group in groups:
            amount = pod_class.requests.get(name, 0) + group.requests.get(name, 0)
            enough = levels.at_least(amount) if levels else template.catalogue.everything if amount <= 0 else 0
            passed |= group.types & enough
        besides = max(group.requests.get(name, 0) for group in groups)
        yield TypeFilter(FilterKind.RESOURCE, passed, name, str(pod_class.requests.get(name, 0)), besides)
    if pod_class.ports:
        free = sum(group.types for group in groups if not port_conflicts(pod_class.ports, group.ports))
        yield TypeFilter(FilterKind.HOST_PORTS, free, "", " ".join(port_names(pod_class)))


def _device_filters(template: Template, pod_class: PodClass) -> Iterator[TypeFilter]:
    if pod_class.devices is not None:
        yield TypeFilter(FilterKind.DEVICES, pod_class.devices.suiting(template), "", " ".join(pod_class.devices.names))


def port_names(pod_class: PodClass) -> list[str]:
    return [f"{port.port}/{port.protocol}" for port in sorted(pod_class.ports)]


def types_passing(types: int, filters: Iterable[TypeFilter], *kinds: FilterKind) -> int:
    """The types that pass all filters of these kinds; of all kinds, if none is named."""
    for type_filter in filters:
        if not kinds or type_filter.kind in kinds:
            types &= type_filter.passed
    return types


# ── where ──────────────────────────────────────


def place_filters(template: Template, pod_class: PodClass) -> Iterator[TypeFilter]:
    """Three filters: types that are not on offer where the pod's volumes are, types without capacity there when they
    were last asked for, and types that cannot be had where topology allows. If no type is left, the place is the
    obstacle, whatever the type."""
    demand, base = pod_class.demand, template.step(template.base, pod_class.requirements)
    if not isinstance(base, NarrowedTemplate) or not base.viable:
        return
    there = base.viable
    if demand.alternatives:
        steps = (template.step(base, alternative) for alternative in demand.alternatives)
        reached = [state for state in steps if isinstance(state, NarrowedTemplate)]
        there = _any_of(reached)
        listed = base.viable & _on_offer(template, reached)
        allowed = ", ".join(pod_class.apart) or " or ".join(map(_requirements_text, demand.alternatives))
        yield TypeFilter(FilterKind.VOLUMES, _types_outside(template, base.viable, listed), "", allowed)
        if listed:
            yield TypeFilter(FilterKind.UNAVAILABLE, _types_outside(template, listed, there))
    if demand.asks and there:
        left = _any_of(state for _, state in demand.options(template, template.base))
        passed = _types_outside(template, there, left) if demand.allows_host(NEW_CLAIM_HOST) else 0
        yield TypeFilter(
            FilterKind.TOPOLOGY,
            passed,
            "",
            " ".join(sorted({rule.key for rule in (*demand.host_rules, *demand.rules)})),
        )


def _any_of(states: Iterable[NarrowedTemplate]) -> int:
    types = 0
    for state in states:
        types |= state.viable
    return types


def _on_offer(template: Template, states: Iterable[NarrowedTemplate]) -> int:
    """The types that are on offer in any of these places, whether or not there was capacity."""
    types = 0
    for state in states:
        for number in state.slots:
            types |= template.slots[number].types
    return types


def _types_outside(template: Template, asked: int, left: int) -> int:
    """All types but those that were asked about and are not left. If none is left, no types."""
    return template.catalogue.everything & ~(asked & ~left) if left else 0


def _requirements_text(requirements: Requirements) -> str:
    return " and ".join(str(requirement) for requirement in requirements)


def large_enough(template: Template, wanted: Requirements, requests: Resources) -> int:
    """The types that meet these requirements and are by themselves large enough for these requests, those of one pod if
    they do not count `pods`."""
    met = types_passing(template.types, requirement_filters(template.catalogue, wanted))
    return met & template.catalogue.fitting({**requests, "pods": requests.get("pods", 1)})
