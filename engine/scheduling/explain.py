"""Why a candidate refused a class, worked out after the fact: the search itself keeps no reasons.

A new claim has to pass a list of hurdles, each a set of types (a bitset): limits, one per required label,
offerings, one per resource, host ports. The funnel applies them in order; a near miss is a hurdle that
stands alone in the way of some types.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.catalogue import CompiledCatalogue, bits
from kerf.engine.scheduling.claims import Claim
from kerf.engine.scheduling.daemons import DaemonGroup
from kerf.engine.scheduling.hostports import conflicts
from kerf.engine.scheduling.near import NEW_HOST, NODE_POOL, POD, cheapest, likely, near_topology
from kerf.engine.scheduling.podclass import PodClass
from kerf.engine.scheduling.reasons import Code, conflict_reason, reason, topology_reason
from kerf.engine.scheduling.requirements import Conflict, Requirement, Requirements
from kerf.engine.scheduling.resources import added
from kerf.engine.scheduling.taints import text, untolerated
from kerf.engine.scheduling.templates import NODES, SIMULATION_ONLY, State, Template
from kerf.engine.scheduling.topology.rules import Rule
from kerf.engine.scheduling.trace import Candidate, Cut, NearMiss, Tracer, TypeFunnel

LIMITS, REQUIREMENT, OFFERING, LEFT_OUT, UNAVAILABLE = "limits", "requirement", "offering", "left-out", "unavailable"
RESOURCE, HOST_PORTS, MIN_VALUES, TAINT, DEVICES = "resource", "host-ports", "min-values", "taint", "devices"
_ON_OFFER = (OFFERING, LEFT_OUT, UNAVAILABLE)
NEW_CLAIM = -1
"""The index of one that is not open."""
SHOWN = 5
"""How many near misses a funnel names."""


class _Hurdle(Struct, frozen=True):
    """`passed`: the types that take it."""

    what: str
    passed: int
    key: str = ""
    wanted: str = ""


def explain_template(template: Template, wanted: PodClass, tracer: Tracer | None) -> Reason:
    """Why no claim of this template can be opened for the class; tells the tracer the whole funnel."""
    hurdles = _hurdles(template, wanted)
    refusal = _refusal(template, wanted, hurdles)
    if tracer is not None:
        tracer.pool_considered(wanted, refusal, _funnel(template, wanted, hurdles))
    return refusal


def trace_opening(claim: Claim, wanted: PodClass, tracer: Tracer, why: Reason | None = None) -> None:
    """Tell the tracer the funnel of a claim that is being opened, or `why` it is not; before its limits are counted."""
    funnel = _funnel(claim.template, wanted, _hurdles(claim.template, wanted))
    tracer.pool_considered(wanted, why, funnel, None if why else claim.index)


def explain_dropped(template: Template, tracer: Tracer | None) -> Reason:
    """Why a NodePool has nothing to launch (S-66)."""
    catalogue, name, left = template.catalogue, template.name, template.state.viable
    why = reason(Code.NO_INSTANCE_TYPES, node_pool=name, types=len(catalogue.types))
    if left:
        keys = sorted(template.unmet_min_values(template.state.min_values, left))
        count = len(catalogue.types)
        why = reason(Code.TOO_FEW_TYPES, node_pool=name, types=count, left=left.bit_count(), keys=keys)
    if tracer is not None:
        hurdles = [
            *_requirement_hurdles(catalogue, template.state.requirements),
            *_offering_hurdles(template, template.state),
        ]
        if left:
            hurdles.append(_Hurdle(MIN_VALUES, 0))
        tracer.pool_dropped(why, TypeFunnel(name, len(catalogue.types), _cuts(catalogue, hurdles)))
    return why


def explain_claim(claim: Claim, wanted: PodClass) -> Reason:
    """Why an open claim refused the class."""
    template, name = claim.template, claim.template.name
    taints = untolerated(template.pool.taints, wanted.tolerations)
    if taints:
        return reason(Code.TAINTS, node_pool=name, taints=[text(each) for each in taints])
    taken = conflicts(wanted.ports, claim.ports)
    if taken:
        return reason(Code.HOST_PORTS, node_pool=name, ports=_ports(wanted))
    following = template.step(claim.state, wanted.requirements)
    if not isinstance(following, State):
        return conflict_reason(following, claim.state.requirements, node_pool=name)
    refusing = wanted.demand.refusing(template, following, claim.index)
    if refusing is not None:
        return topology_reason(refusing, node_pool=name)
    claim.settle()
    requests = added(claim.requests, wanted.requests)
    names = [
        each for each in requests if not claim.types & template.survivors(claim.types, {each: requests[each]}, (), ())
    ]
    if names:
        return reason(Code.RESOURCES, node_pool=name, resources=sorted(names))
    left = template.survivors(claim.types & following.viable, requests, wanted.ports, claim.ports)
    unmet = template.unmet_min_values(following.min_values, left)
    if unmet:
        return reason(Code.MIN_VALUES, node_pool=name, keys=sorted(unmet))
    if left and wanted.devices is not None:
        refused = wanted.devices.refusal_of(claim.index, template, following, left)
        if refused is not None:
            return refused
    if left:
        return reason(Code.RESERVATION, node_pool=name)
    return reason(
        Code.TYPES_COMBINED,
        node_pool=name,
        requirements=(claim.types & following.viable).bit_count(),
        resources=template.survivors(claim.types, requests, (), ()).bit_count(),
        offerings=following.viable.bit_count(),
    )


# ── one template, one class ──────────────────────────────────────


def _hurdles(template: Template, wanted: PodClass) -> list[_Hurdle]:
    """In the order in which a reader asks. A taint or a label that the NodePool itself rules out stops every
    type; what its limits leave comes after what the pod and the NodePool can do for each other at all."""
    requirements = template.state.requirements.merged(wanted.requirements)
    untolerable = untolerated(template.pool.taints, wanted.tolerations)
    conflicting = _conflicts(template, wanted)
    return [
        *(_Hurdle(TAINT, 0, taint.key, text(taint)) for taint in untolerable),
        *(_Hurdle(REQUIREMENT, 0, each.key, str(each.incoming)) for each in conflicting),
        *_requirement_hurdles(template.catalogue, requirements.without(each.key for each in conflicting)),
        *_limit_hurdles(template),
        *_offering_hurdles(template, template.at(requirements)),
        *_resource_hurdles(template, wanted),
        *_device_hurdles(template, wanted),
    ]


def _conflicts(template: Template, wanted: PodClass) -> tuple[Conflict, ...]:
    following = template.step(template.state, wanted.requirements)
    return following if isinstance(following, tuple) else ()


def _limit_hurdles(template: Template) -> Iterator[_Hurdle]:
    for name, amount in template.remaining.items():
        levels = template.catalogue.capacity.get(name)
        if name == NODES:
            yield _Hurdle(LIMITS, template.catalogue.everything if amount >= 1 else 0, name)
        elif levels is not None:
            yield _Hurdle(LIMITS, levels.at_most(amount), name, str(amount))


def _requirement_hurdles(catalogue: CompiledCatalogue, requirements: Requirements) -> Iterator[_Hurdle]:
    for each in requirements:
        if each.key not in SIMULATION_ONLY:
            yield _Hurdle(REQUIREMENT, catalogue.admitting(each), each.key, str(each))


def _offering_hurdles(template: Template, state: State) -> Iterator[_Hurdle]:
    """Types that nobody sells this way, then those that this try of a search leaves out, then those sold out."""
    sold = on_offer = 0
    for number in state.slots:
        on_offer |= template.available[number]
        for each in template.slots[number].prices:
            sold |= 1 << each
    yield _Hurdle(OFFERING, sold)
    left_out = template.left_out()
    yield _Hurdle(LEFT_OUT, template.catalogue.everything & ~left_out)
    yield _Hurdle(UNAVAILABLE, on_offer | left_out)


def _resource_hurdles(template: Template, wanted: PodClass) -> Iterator[_Hurdle]:
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
        yield _Hurdle(RESOURCE, passed, name, str(wanted.requests.get(name, 0)))
    if wanted.ports:
        free = sum(group.types for group in groups if not conflicts(wanted.ports, group.ports))
        yield _Hurdle(HOST_PORTS, free, "", " ".join(_ports(wanted)))


def _device_hurdles(template: Template, wanted: PodClass) -> Iterator[_Hurdle]:
    if wanted.devices is not None:
        yield _Hurdle(DEVICES, wanted.devices.suiting(template), "", " ".join(wanted.devices.names))


def _ports(wanted: PodClass) -> list[str]:
    return [f"{each.port}/{each.protocol}" for each in sorted(wanted.ports)]


def _refusal(template: Template, wanted: PodClass, hurdles: list[_Hurdle]) -> Reason:
    """The coded reason: what pod and NodePool cannot do for each other at all, then the NodePool's limits (wherever
    types beyond them would do), then the order of S-99 and S-111."""
    name = template.name
    taints = untolerated(template.pool.taints, wanted.tolerations)
    if taints:
        return reason(Code.TAINTS, node_pool=name, taints=[text(each) for each in taints])
    following = template.step(template.state, wanted.requirements)
    if not isinstance(following, State):
        return conflict_reason(following, template.state.requirements, node_pool=name)
    if template.node_limit_reached:
        return reason(Code.NODE_LIMIT, node_pool=name, limit=(template.pool.limits or {}).get(NODES, 0))
    allowed = template.within_limits(template.types)
    if not allowed:
        return _limits_refusal(template, hurdles)
    left = template.survivors(template.types & following.viable, wanted.requests, wanted.ports, ())
    if left & allowed:
        unmet = template.unmet_min_values(following.min_values, left & allowed)
        if wanted.devices is not None and not unmet:
            refused = wanted.devices.refusal_of(NEW_CLAIM, template, following, left & allowed)
            if refused is not None:
                return refused
        refusing = None if unmet else _refusing(template, following, wanted)
        if refusing is not None:
            return topology_reason(refusing, node_pool=name)
        if wanted.demand.alternatives and not unmet:
            there = [str(each) for each in wanted.demand.alternatives]
            return reason(Code.VOLUME_TOPOLOGY, node_pool=name, allowed=there)
        return reason(Code.MIN_VALUES, node_pool=name, keys=sorted(unmet))
    if left:
        return _limits_refusal(template, hurdles)
    return _type_refusal(template, wanted, hurdles, allowed)


def _refusing(template: Template, state: State, wanted: PodClass) -> Rule | None:
    """The rule of topology that leaves a new claim no domain, or else, if only together they leave none that is on
    offer, the first one."""
    rules = (*wanted.demand.rules, *wanted.demand.host_rules)
    return wanted.demand.refusing(template, state, NEW_HOST) or next(iter(rules), None)


def _limits_refusal(template: Template, hurdles: list[_Hurdle]) -> Reason:
    exceeded = sorted(each.key for each in hurdles if each.what == LIMITS and template.types & ~each.passed)
    return reason(Code.LIMITS, node_pool=template.name, resources=exceeded)


def _type_refusal(template: Template, wanted: PodClass, hurdles: list[_Hurdle], candidates: int) -> Reason:
    name = template.name
    met = _passing(candidates, hurdles, REQUIREMENT)
    if not met:
        keys = [h.key for h in hurdles if h.what == REQUIREMENT and candidates & ~h.passed]
        return reason(Code.TYPES_REQUIREMENTS, node_pool=name, keys=keys, types=candidates.bit_count())
    large = template.survivors(candidates, wanted.requests, wanted.ports, ())
    offered = _passing(candidates, hurdles, *_ON_OFFER)
    if not met & large:
        short = [h.key for h in hurdles if h.what == RESOURCE and not met & h.passed]
        if wanted.ports and not template.survivors(candidates, {}, wanted.ports, ()):
            return reason(Code.HOST_PORTS, node_pool=name, ports=_ports(wanted))
        if short:
            return reason(Code.TYPES_RESOURCES, node_pool=name, resources=short, types=met.bit_count())
    elif not met & large & offered:
        return reason(Code.TYPES_OFFERINGS, node_pool=name, types=(met & large).bit_count())
    return reason(
        Code.TYPES_COMBINED,
        node_pool=name,
        requirements=met.bit_count(),
        resources=large.bit_count(),
        offerings=offered.bit_count(),
    )


def _passing(types: int, hurdles: list[_Hurdle], *what: str) -> int:
    for hurdle in hurdles:
        if hurdle.what in what:
            types &= hurdle.passed
    return types


# ── the funnel ──────────────────────────────────────


def _funnel(template: Template, wanted: PodClass, hurdles: list[_Hurdle]) -> TypeFunnel:
    left = template.catalogue.everything
    for hurdle in hurdles:
        left &= hurdle.passed
    return TypeFunnel(
        template.name,
        len(template.catalogue.types),
        _cuts(template.catalogue, hurdles),
        candidates(template, template.at(template.state.requirements.merged(wanted.requirements)), left),
        tuple(sorted(_near(template, wanted, hurdles), key=lambda miss: (-miss.types, miss.what, miss.key))[:SHOWN]),
    )


def _cuts(catalogue: CompiledCatalogue, hurdles: list[_Hurdle]) -> tuple[Cut, ...]:
    left, cuts = catalogue.everything, []
    for hurdle in hurdles:
        gone = (left & ~hurdle.passed).bit_count()
        left &= hurdle.passed
        if gone:
            cuts.append(Cut(hurdle.what, gone, hurdle.key, hurdle.wanted))
    return tuple(cuts)


def candidates(template: Template, state: State, types: int) -> tuple[Candidate, ...]:
    """These types, cheapest first."""
    names = template.catalogue.names
    return tuple(Candidate(names[i], price) for price, i in template.by_price(state) if types >> i & 1)


def _near(template: Template, wanted: PodClass, hurdles: list[_Hurdle]) -> Iterator[NearMiss]:
    """What single hurdle keeps out types that pass all others."""
    for hurdle in (each for each in hurdles if each.what != LEFT_OUT):
        others = [each for each in hurdles if each is not hurdle]
        if hurdle.what == REQUIREMENT:
            yield from _near_requirement(template, wanted, hurdle, others)
            continue
        extra = template.catalogue.everything & ~hurdle.passed
        for each in others:
            extra &= each.passed
        if extra:
            nearest, short = _shortfall(template, hurdle, wanted, extra)
            if hurdle.what == RESOURCE and short >= wanted.requests.get(hurdle.key, 0):
                continue  # they have none of it: to do without is another pod, not a near miss
            example = cheapest(template, nearest)
            yield NearMiss(hurdle.what, extra.bit_count(), example, hurdle.key, short=short)
    left = _passing(template.catalogue.everything, hurdles, *(each.what for each in hurdles))
    yield from near_topology(template, wanted, left, lambda key: _passing_but(template, hurdles, key))


def _passing_but(template: Template, hurdles: list[_Hurdle], key: str) -> int:
    """The types that pass all hurdles but what is asked of one label, which decides about offerings too."""
    others = [each for each in hurdles if each.key != key and each.what not in _ON_OFFER]
    return _passing(template.catalogue.everything, others, *(each.what for each in others))


def _near_requirement(
    template: Template, wanted: PodClass, hurdle: _Hurdle, others: list[_Hurdle]
) -> Iterator[NearMiss]:
    """What would come through if the pod, or the NodePool, did not ask this of the label. A label also
    decides which offerings are usable, so those are looked at anew."""
    requirements = template.state.requirements.merged(wanted.requirements)
    own, asked = template.state.requirements.find(hurdle.key), wanted.requirements.find(hurdle.key)
    through = 0 if hurdle.passed == 0 else template.at(requirements).viable
    for side, kept, freed in ((POD, own, asked), (NODE_POOL, asked, own)):
        if freed is None and (side == POD or hurdle.passed):
            continue  # this side says nothing about the label
        rest = requirements.without([hurdle.key])
        state = template.at(rest.merged([kept]) if kept is not None else rest)
        extra = state.viable & ~through
        for each in others:
            if each.what not in _ON_OFFER:
                extra &= each.passed
        if extra:
            values = _values_needed(template, state, hurdle.key, extra, freed, kept)
            example = cheapest(template, extra)
            meant = likely(template, freed, values)
            yield NearMiss(REQUIREMENT, extra.bit_count(), example, hurdle.key, values, side=side, meant=meant)


def _values_needed(
    template: Template, state: State, key: str, types: int, freed: Requirement | None, kept: Requirement | None
) -> tuple[str, ...]:
    """The label values that the freed side would have to allow: those of the types' offerings, else of the
    types, else (a label that types know nothing of) what the other side asks for."""
    offered = {
        value
        for number in state.slots
        if template.available[number] & types
        for each in template.slots[number].requirements()
        if each.key == key
        for value in each.values
    }
    index = template.catalogue.labels.get(key)
    known = {value for value, mask in index.values.items() if mask & types} if index else set()
    other = set(kept.values) if kept is not None and not kept.complement else set()
    values = offered or known or other
    return tuple(
        sorted(
            value for value in values if (freed is None or not freed.has(value)) and (kept is None or kept.has(value))
        )
    )


def _shortfall(template: Template, hurdle: _Hurdle, wanted: PodClass, types: int) -> tuple[int, int]:
    """The types that come nearest to passing a hurdle, and by how much they miss it, in the resource's
    unit; all of them and 0 if it is no amount."""
    catalogue = template.catalogue
    if hurdle.what == RESOURCE:
        daemons = (group.requests.get(hurdle.key, 0) for group in template.groups if group.types & types)
        need = wanted.requests.get(hurdle.key, 0) + min(daemons, default=0)
        levels = catalogue.allocatable.get(hurdle.key)
        if levels is None:
            return types, need
        most = levels.highest(types)
        return types & levels.at_least(most), max(0, need - most)
    if hurdle.what == LIMITS and hurdle.key in catalogue.capacity:
        least = min(catalogue.types[i].capacity.get(hurdle.key, 0) for i in bits(types))
        return types & catalogue.capacity[hurdle.key].at_most(least), least - template.remaining[hurdle.key]
    return types, 0
