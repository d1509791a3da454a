"""Why a candidate refused a class. It is worked out after the fact, because the search itself keeps no reasons.

A new claim must pass a list of filters, each a set of types (a bitset). The funnel applies them one after another. A
near miss is a filter that alone keeps some types out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from kerf.engine.model.did_you_mean import did_you_mean
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Toleration
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.near_misses import near_misses, near_misses_of_dropped_pool
from kerf.engine.scheduling.explain.tracer import Cut, NearMiss, PricedType, Tracer, TypeFunnel
from kerf.engine.scheduling.explain.type_filters import (
    NEW_CLAIM_HOST,
    ON_OFFER,
    FilterKind,
    TypeFilter,
    offering_filters,
    place_filters,
    port_names,
    requirement_filters,
    type_filters,
    types_passing,
    withheld_filters,
)
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT, NarrowedTemplate, Template
from kerf.engine.scheduling.launchable.withheld import not_given
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.matching.taints import taint_text, toleration_text, untolerated
from kerf.engine.scheduling.packing.packed_claim import PackedClaim
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.reasons import SchedulingCode, conflict_reason, reason, topology_reason, volumes_reason
from kerf.engine.scheduling.topology.rules import Rule

NEW_CLAIM_INDEX = -1
"""The index of one that is not open."""


def explain_template(template: Template, pod_class: PodClass, tracer: Tracer | None) -> Reason:
    """Why no claim of this template can be opened for the class. The tracer gets the whole funnel."""
    filters = type_filters(template, pod_class)
    refusal = _template_refusal(template, pod_class, filters)
    if tracer is not None:
        tracer.pool_considered(pod_class, refusal, _type_funnel(template, pod_class, filters))
    return refusal


def trace_opening(claim: PackedClaim, pod_class: PodClass, tracer: Tracer, why: Reason | None = None) -> None:
    """Give the tracer the funnel of a claim that is being opened, or the reason `why` it is not. Call it before the
    claim counts against limits."""
    funnel = _type_funnel(claim.template, pod_class, type_filters(claim.template, pod_class))
    tracer.pool_considered(pod_class, why, funnel, None if why else claim.index)


def explain_dropped(template: Template, tracer: Tracer | None) -> Reason:
    """Why a NodePool has nothing to launch (S-66). Near misses depend on what pods ask for, so the tracer gets a
    function that finds them."""
    catalogue, name, left = template.catalogue, template.name, template.base.viable
    why = _withheld_reason(template, template.base.requirements) or reason(
        SchedulingCode.NO_INSTANCE_TYPES, node_pool=name, types=len(catalogue.types)
    )
    if left:
        keys = sorted(template.unmet_min_values(template.base.min_values, left))
        count = len(catalogue.types)
        why = reason(SchedulingCode.TOO_FEW_TYPES, node_pool=name, types=count, left=left.bit_count(), keys=keys)
    if tracer is not None:
        few = [TypeFilter(FilterKind.MIN_VALUES, 0)] if left else []
        filters = [
            *requirement_filters(catalogue, template.base.requirements),
            *withheld_filters(template, template.base.requirements),
            *offering_filters(template, template.base),
            *few,
        ]

        def near(pod_class: PodClass) -> tuple[NearMiss, ...]:
            return near_misses_of_dropped_pool(template, pod_class, [*type_filters(template, pod_class), *few])

        tracer.pool_dropped(
            why, TypeFunnel(name, len(catalogue.types), _cuts(catalogue, filters), weight=template.pool.weight), near
        )
    return why


def explain_claim(claim: PackedClaim, pod_class: PodClass) -> Reason:
    """Why a claim of this pass refused the class."""
    template, name = claim.template, claim.template.name
    taints = untolerated(template.pool.taints, pod_class.tolerations)
    if taints:
        return reason(SchedulingCode.TAINTS, node_pool=name, taints=[taint_text(taint) for taint in taints])
    taken = port_conflicts(pod_class.ports, claim.ports)
    if taken:
        return reason(SchedulingCode.HOST_PORTS, node_pool=name, ports=port_names(pod_class))
    following = template.step(claim.narrowed, pod_class.requirements)
    if not isinstance(following, NarrowedTemplate):
        return conflict_reason(following, claim.narrowed.requirements, node_pool=name)
    refusing = pod_class.demand.refusing(template, following, claim.index)
    if refusing is not None:
        return topology_reason(refusing, node_pool=name)
    claim.settle()
    requests = added(claim.requests, pod_class.requests)
    names = [
        resource
        for resource, amount in requests.items()
        if not claim.types & template.survivors(claim.types, {resource: amount}, (), ())
    ]
    if names:
        return reason(SchedulingCode.RESOURCES, node_pool=name, resources=sorted(names))
    left = template.survivors(claim.types & following.viable, requests, pod_class.ports, claim.ports)
    unmet = template.unmet_min_values(following.min_values, left)
    if unmet:
        return reason(SchedulingCode.MIN_VALUES, node_pool=name, keys=sorted(unmet))
    if left and pod_class.devices is not None:
        refused = pod_class.devices.refusal_of(claim.index, template, following, left)
        if refused is not None:
            return refused
    if left:
        return reason(SchedulingCode.RESERVATION, node_pool=name)
    return reason(
        SchedulingCode.TYPES_COMBINED,
        node_pool=name,
        requirements=(claim.types & following.viable).bit_count(),
        resources=template.survivors(claim.types, requests, (), ()).bit_count(),
        offerings=following.viable.bit_count(),
    )


# ── one template, one class ──────────────────────────────────────


def _template_refusal(template: Template, pod_class: PodClass, filters: list[TypeFilter]) -> Reason:
    """The reason. First what pod and NodePool can never do for each other; then the NodePool's limits, if types beyond
    them would do; then in the order of S-99 and S-111."""
    name = template.name
    taints = untolerated(template.pool.taints, pod_class.tolerations)
    if taints:
        return reason(SchedulingCode.TAINTS, node_pool=name, taints=[taint_text(taint) for taint in taints])
    following = template.step(template.base, pod_class.requirements)
    if not isinstance(following, NarrowedTemplate):
        return conflict_reason(following, template.base.requirements, node_pool=name)
    withheld = _withheld_reason(template, following.requirements)
    if withheld is not None:
        return withheld
    if template.node_limit_reached:
        return reason(SchedulingCode.NODE_LIMIT, node_pool=name, limit=(template.pool.limits or {}).get(NODES_LIMIT, 0))
    allowed = template.within_limits(template.types)
    left = template.survivors(template.types & following.viable, pod_class.requests, pod_class.ports, ())
    if left & allowed:
        unmet = template.unmet_min_values(following.min_values, left & allowed)
        if pod_class.devices is not None and not unmet:
            refused = pod_class.devices.refusal_of(NEW_CLAIM_INDEX, template, following, left & allowed)
            if refused is not None:
                return refused
        refusing = None if unmet else _refusing(template, following, pod_class)
        if refusing is not None:
            return topology_reason(refusing, node_pool=name)
        if pod_class.demand.alternatives and not unmet:
            return volumes_reason(pod_class.demand.alternatives, pod_class.apart, node_pool=name)
        return reason(SchedulingCode.MIN_VALUES, node_pool=name, keys=sorted(unmet))
    if left:
        return _limits_refusal(template, filters)
    return _type_refusal(template, pod_class, filters, allowed or template.types)


def _withheld_reason(template: Template, requirements: Requirements) -> Reason | None:
    """The reason if nothing is launched for some of these requirements."""
    withheld = template.withheld(requirements)
    return not_given(withheld, node_pool=template.name) if withheld else None


def _refusing(template: Template, narrowed: NarrowedTemplate, pod_class: PodClass) -> Rule | None:
    """The topology rule that leaves a new claim no domain. If only all rules together leave none, or there is no room
    in what they leave, the first rule that refuses some domain; else the first rule."""
    demand = pod_class.demand
    alone = demand.refusing(template, narrowed, NEW_CLAIM_HOST)
    if alone is not None:
        return alone
    some = (rule for rule in demand.rules if not all(map(rule.allows, template.domains(narrowed, rule.key))))
    return next(chain(some, demand.rules, demand.host_rules), None)


def _limits_refusal(template: Template, filters: list[TypeFilter]) -> Reason:
    exceeded = sorted(
        type_filter.key
        for type_filter in filters
        if type_filter.kind == FilterKind.LIMITS and template.types & ~type_filter.passed
    )
    return reason(SchedulingCode.LIMITS, node_pool=template.name, resources=exceeded)


def _type_refusal(template: Template, pod_class: PodClass, filters: list[TypeFilter], candidates: int) -> Reason:
    name = template.name
    met = types_passing(candidates, filters, FilterKind.REQUIREMENT)
    if not met:
        keys = [
            type_filter.key
            for type_filter in filters
            if type_filter.kind == FilterKind.REQUIREMENT and candidates & ~type_filter.passed
        ]
        return reason(SchedulingCode.TYPES_REQUIREMENTS, node_pool=name, keys=keys, types=candidates.bit_count())
    large = template.survivors(candidates, pod_class.requests, pod_class.ports, ())
    offered = types_passing(candidates, filters, *ON_OFFER)
    if not met & large:
        short = [
            type_filter.key
            for type_filter in filters
            if type_filter.kind == FilterKind.RESOURCE and not met & type_filter.passed
        ]
        if pod_class.ports and not template.survivors(candidates, {}, pod_class.ports, ()):
            return reason(SchedulingCode.HOST_PORTS, node_pool=name, ports=port_names(pod_class))
        if short:
            return reason(SchedulingCode.TYPES_RESOURCES, node_pool=name, resources=short, types=met.bit_count())
    elif not met & large & offered:
        return reason(SchedulingCode.TYPES_OFFERINGS, node_pool=name, types=(met & large).bit_count())
    return reason(
        SchedulingCode.TYPES_COMBINED,
        node_pool=name,
        requirements=met.bit_count(),
        resources=large.bit_count(),
        offerings=offered.bit_count(),
    )


# ── the funnel ──────────────────────────────────────


def _type_funnel(template: Template, pod_class: PodClass, filters: list[TypeFilter]) -> TypeFunnel:
    filters = [*filters, *place_filters(template, pod_class)]
    left = types_passing(template.catalogue.everything, filters)
    return TypeFunnel(
        template.name,
        len(template.catalogue.types),
        _cuts(template.catalogue, filters, pod_class.tolerations),
        tuple(types_by_price(template, template.at(template.base.requirements.merged(pod_class.requirements)), left)),
        near_misses(template, pod_class, filters),
        template.pool.weight,
    )


def _cuts(
    catalogue: CompiledCatalogue, filters: list[TypeFilter], tolerations: tuple[Toleration, ...] = ()
) -> tuple[Cut, ...]:
    left, cuts = catalogue.everything, []
    for type_filter in filters:
        gone = (left & ~type_filter.passed).bit_count()
        left &= type_filter.passed
        if gone:
            kind, key = type_filter.kind, type_filter.key
            nearly = _nearly(key, tolerations) if kind is FilterKind.TAINT else ()
            cuts.append(Cut(kind.value, gone, key, type_filter.wanted, type_filter.daemons, nearly))
    return tuple(cuts)


def _nearly(key: str, tolerations: tuple[Toleration, ...]) -> tuple[str, ...]:
    """What is tolerated of a taint's key, or of one that is nearly spelt so."""
    near = did_you_mean(key, sorted({toleration.key for toleration in tolerations}))
    return tuple(sorted({toleration_text(toleration) for toleration in tolerations if toleration.key in near}))


def types_by_price(template: Template, narrowed: NarrowedTemplate, types: int) -> Iterator[PricedType]:
    """These types with their prices, cheapest first."""
    names = template.catalogue.names
    return (PricedType(names[number], price) for price, number in template.cheapest_first(narrowed, types))
