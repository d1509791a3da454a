"""Near misses: what single change would let types through that pass everything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from msgspec.structs import replace

from kerf.engine.model.labels import INSTANCE_TYPE
from kerf.engine.model.mistyped import near_value
from kerf.engine.scheduling.explain.tracer import NearMiss
from kerf.engine.scheduling.explain.type_filters import (
    LEFT_OUT,
    LIMITS,
    NEW_CLAIM_HOST,
    ON_OFFER,
    REQUIREMENT,
    RESOURCE,
    TOPOLOGY,
    VOLUMES,
    TypeFilter,
)
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.matching.requirements import Requirement, Requirements, parse_integer
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.topology.pod_counts import PodCount
from kerf.engine.scheduling.topology.rules import AffinityRule, Rule

POD, NODE_POOL = "pod", "node-pool"
MAX_NEAR_MISSES_SHOWN = 5
"""How many near misses a funnel names."""


def near_misses(template: Template, wanted: PodClass, hurdles: Sequence[TypeFilter]) -> tuple[NearMiss, ...]:
    """What single hurdle keeps out types that pass all others: the changes that would let most types through first."""
    found = [
        *_amount_near_misses(template, wanted, hurdles),
        *_requirement_near_misses(template, wanted.requirements, hurdles),
        *_volume_near_misses(template, wanted, hurdles),
        *_topology_near_misses(template, wanted, hurdles),
    ]
    return _most_types_first(found)


def near_misses_of_dropped_pool(
    template: Template, wanted: PodClass, hurdles: Sequence[TypeFilter]
) -> tuple[NearMiss, ...]:
    """The same for a NodePool that has nothing to launch, whatever is asked of it (S-66). Where topology and volumes
    would let the pods go is not asked: the NodePool has no place anywhere."""
    return _most_types_first(
        [
            *_amount_near_misses(template, wanted, hurdles),
            *_requirement_near_misses(template, wanted.requirements, hurdles),
        ]
    )


def _most_types_first(found: Iterable[NearMiss]) -> tuple[NearMiss, ...]:
    return tuple(sorted(found, key=lambda miss: (-miss.types, miss.what, miss.key))[:MAX_NEAR_MISSES_SHOWN])


def _passing_all_but(template: Template, hurdles: Iterable[TypeFilter], left_out: TypeFilter) -> int:
    """The types that pass all other hurdles, and not this one."""
    types = template.catalogue.everything & ~left_out.passed
    for each in hurdles:
        if each is not left_out:
            types &= each.passed
    return types


def _passing_but(template: Template, hurdles: Iterable[TypeFilter], key: str) -> int:
    """The types that pass all hurdles but what is asked of one label, which decides about offerings and places too."""
    types = template.catalogue.everything
    for each in hurdles:
        if each.key != key and each.what not in (*ON_OFFER, VOLUMES, TOPOLOGY):
            types &= each.passed
    return types


# ── what is an amount, or is there or not ──────────────────────────────────────


def _amount_near_misses(template: Template, wanted: PodClass, hurdles: Sequence[TypeFilter]) -> Iterator[NearMiss]:
    state = template.at(template.state.requirements.merged(wanted.requirements))
    for hurdle in (each for each in hurdles if each.what not in (LEFT_OUT, REQUIREMENT, VOLUMES, TOPOLOGY)):
        asked = _beyond_limits(template, wanted, hurdles) if hurdle.what == LIMITS else hurdles
        extra = _passing_all_but(template, asked, hurdle)
        if not extra:
            continue
        nearest, short = _shortfall(template, hurdle, wanted, extra)
        if hurdle.what == RESOURCE and short >= wanted.requests.get(hurdle.key, 0):
            continue  # they have none of it: to do without is another pod, not a near miss
        example = cheapest(template, state, nearest)
        yield NearMiss(hurdle.what, nearest.bit_count(), example, hurdle.key, short=short)


def _shortfall(template: Template, hurdle: TypeFilter, wanted: PodClass, types: int) -> tuple[int, int]:
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


def _beyond_limits(template: Template, wanted: PodClass, hurdles: Sequence[TypeFilter]) -> list[TypeFilter]:
    """The hurdles as they would be if limits left more. A spread knows no domain in which they leave no node (S-129):
    that is their doing, and no hurdle besides."""
    return [
        replace(each, passed=_places_beyond_limits(template, wanted))
        if each.what == TOPOLOGY and not each.passed
        else each
        for each in hurdles
    ]


def _places_beyond_limits(template: Template, wanted: PodClass) -> int:
    """The types that topology would let the pods go to if limits left some of each. Volumes are a hurdle of their
    own."""
    following, demand = template.step(template.state, wanted.requirements), wanted.demand
    if not isinstance(following, NarrowedTemplate) or not demand.allows_host(NEW_CLAIM_HOST):
        return 0
    types = following.viable
    for key in sorted({each.key for each in demand.rules}):
        rules = [each for each in demand.rules if each.key == key]
        present = template.domains(following, key)
        there = tuple(each for each in present if all(_would_know(template, following, r, each) for r in rules))
        if present or any(rule.needs_label for rule in rules):
            types &= template.pin(following, key, there).viable if there else 0
    return types


def _would_know(template: Template, state: NarrowedTemplate, rule: Rule, domain: str) -> bool:
    """Whether a rule would allow a domain in which a node of the state could be launched."""
    if domain in rule.count.counts:
        return rule.allows(domain)
    counts_here = isinstance(rule.count, PodCount) and rule.count.admits_claim(template, state)
    return counts_here and _would_allow(rule, domain)


# ── what is asked of a label ──────────────────────────────────────


def _requirement_near_misses(
    template: Template, asked: Requirements, hurdles: Sequence[TypeFilter]
) -> Iterator[NearMiss]:
    for hurdle in (each for each in hurdles if each.what == REQUIREMENT):
        yield from _near_misses_of_requirement(
            template, asked, hurdle, [each for each in hurdles if each is not hurdle]
        )


def _near_misses_of_requirement(
    template: Template, asked: Requirements, hurdle: TypeFilter, others: Sequence[TypeFilter]
) -> Iterator[NearMiss]:
    """What would come through if the pod, or the NodePool, did not ask this of the label. A label also
    decides which offerings are usable, so those are looked at anew."""
    requirements = template.state.requirements.merged(asked)
    through = 0 if hurdle.passed == 0 else template.at(requirements).viable
    for side, kept, freed in _sides(template, asked, hurdle.key):
        if freed is None and (side == POD or hurdle.passed):
            continue  # this side says nothing about the label
        rest = requirements.without([hurdle.key])
        state = template.at(rest.merged([kept]) if kept is not None else rest)
        extra = state.viable & ~through
        for each in others:
            if each.what not in ON_OFFER:
                extra &= each.passed
        if extra:
            values = _values_needed(template, state, hurdle.key, extra, freed, kept)
            example = cheapest(template, state, extra)
            meant = likely_meant(template, freed, values, kept)
            yield NearMiss(REQUIREMENT, extra.bit_count(), example, hurdle.key, values, side=side, meant=meant)


def _sides(
    template: Template, asked: Requirements, key: str
) -> tuple[tuple[str, Requirement | None, Requirement | None], ...]:
    """Who would have to change; what the other side asks of the label, and what he does himself."""
    own, wanted = template.state.requirements.find(key), asked.find(key)
    return (POD, own, wanted), (NODE_POOL, wanted, own)


def _values_needed(
    template: Template,
    state: NarrowedTemplate,
    key: str,
    types: int,
    freed: Requirement | None,
    kept: Requirement | None,
) -> tuple[str, ...]:
    """The label values that the freed side would have to allow: those of the types' offerings, else of the types, else
    (a label that types know nothing of) what the other side asks for. Instance types come cheapest first."""
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
    needed = {v for v in values if (freed is None or not freed.has(v)) and (kept is None or kept.has(v))}
    if key == INSTANCE_TYPE:
        names = template.catalogue.names
        return tuple(names[number] for _, number in template.by_price(state) if names[number] in needed)
    return _ordered(needed, freed)


def _ordered(values: set[str], freed: Requirement | None) -> tuple[str, ...]:
    """Numbers by size, from the bound on that keeps them out; names by the alphabet."""
    if not all(parse_integer(value) is not None for value in values):
        return tuple(sorted(values))
    upwards = tuple(sorted(values, key=int))
    return upwards[::-1] if freed is not None and freed.gte is not None else upwards


def likely_meant(
    template: Template, asked: Requirement | None, values: Sequence[str], kept: Requirement | None = None
) -> tuple[str, ...]:
    """What may have been meant by values that were asked for and that no type has, nor, of a label that types know
    nothing of, the other side (`kept`); only what would do."""
    if asked is None or asked.complement:
        return ()
    index = template.catalogue.labels.get(asked.key)
    known = index.values.keys() if index is not None else kept.values if kept is not None else ()
    found = {near_value(value, known) for value in asked.values if value not in known}
    return tuple(sorted(found & set(values)))


def cheapest(template: Template, state: NarrowedTemplate, types: int) -> str:
    """The name of the cheapest of some types by what a node of the state may be launched as; of types that are sold
    out by what they cost otherwise; else the first by name."""
    there = template.by_price(state)
    if template.cheapest(state, types) == inf:
        there = template.catalogue.by_price(tuple((slot, template.catalogue.everything) for slot in state.slots))
    return template.catalogue.names[next(number for _, number in there if types >> number & 1)]


# ── where ──────────────────────────────────────


def _volume_near_misses(template: Template, wanted: PodClass, hurdles: Sequence[TypeFilter]) -> Iterator[NearMiss]:
    """If the pod, or the NodePool, allowed the places of the volumes."""
    base = template.step(template.state, wanted.requirements)
    if not any(each.what == VOLUMES and not each.passed for each in hurdles) or not isinstance(base, NarrowedTemplate):
        return
    told = set()
    for alternative in wanted.demand.alternatives:
        conflicts = template.step(base, alternative)
        keys = {each.key for each in conflicts} if isinstance(conflicts, tuple) else set()
        if len(keys) != 1:
            continue  # it takes more than one change, or another one
        (key,) = keys
        types = _passing_but(template, hurdles, key)
        there = alternative.get(key).values
        for side, kept, freed in _sides(template, wanted.requirements, key):
            if freed is None or (side, key, there) in told or (kept is not None and not there & kept.values):
                continue
            told.add((side, key, there))
            state = template.at(base.requirements.without([key]).merged(alternative))
            miss = NearMiss(REQUIREMENT, 0, "", key, side=side)
            yield from _through(template, state, tuple(sorted(there)), types, miss)


def _topology_near_misses(template: Template, wanted: PodClass, hurdles: Sequence[TypeFilter]) -> Iterator[NearMiss]:
    """If the rules of one kind allowed another domain, or the pod or the NodePool one that the rules leave."""
    following = template.step(template.state, wanted.requirements)
    if not isinstance(following, NarrowedTemplate):
        return
    left = template.catalogue.everything
    for each in hurdles:
        left &= left if each.what == TOPOLOGY else each.passed
    for rule in wanted.demand.host_rules:
        if left and not rule.allows(NEW_CLAIM_HOST):
            yield NearMiss(TOPOLOGY, left.bit_count(), cheapest(template, following, left), rule.key, side=rule.kind)
    for key in sorted({each.key for each in wanted.demand.rules}):
        rules = [each for each in wanted.demand.rules if each.key == key]
        present = template.domains(following, key)
        if any(all(rule.allows(each) for rule in rules) for each in present):
            continue
        for kind in sorted({each.kind for each in rules}):
            others = [each for each in rules if each.kind != kind]
            freed = tuple(each for each in present if all(other.allows(each) for other in others))
            yield from _through(template, following, freed, left, NearMiss(TOPOLOGY, 0, "", key, side=kind))
        yield from _elsewhere(template, wanted, rules, _passing_but(template, hurdles, key))


def _elsewhere(template: Template, wanted: PodClass, rules: Sequence[Rule], types: int) -> Iterator[NearMiss]:
    """The domains that all rules over one key leave, and that pod or NodePool do not allow."""
    key = rules[0].key
    rest = template.state.requirements.merged(wanted.requirements).without([key])
    for side, kept, freed in _sides(template, wanted.requirements, key):
        if freed is None:
            continue
        state = template.at(rest.merged([kept]) if kept is not None else rest)
        domains = template.domains(state, key)
        there = tuple(each for each in domains if not freed.has(each) and all(_would_allow(r, each) for r in rules))
        yield from _through(template, state, there, types, NearMiss(REQUIREMENT, 0, "", key, side=side))


def _would_allow(rule: Rule, domain: str) -> bool:
    """Also of a domain that counts nothing yet because no node can be there: it is empty, where nobody can be
    followed."""
    return rule.allows(domain) or (domain not in rule.count.counts and not isinstance(rule, AffinityRule))


def _through(
    template: Template, state: NarrowedTemplate, domains: tuple[str, ...], types: int, miss: NearMiss
) -> Iterator[NearMiss]:
    """The miss, if some of the types can be had in these domains."""
    if not domains:
        return
    pinned = template.pin(state, miss.key, domains)
    found = pinned.viable & types
    if found:
        yield replace(miss, types=found.bit_count(), example=cheapest(template, pinned, found), values=domains)
