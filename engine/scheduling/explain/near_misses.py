"""Near misses: the single change that would let types through that pass every other filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import Requirement, Requirements, parse_integer
from kerf.engine.model.labels import INSTANCE_TYPE
from kerf.engine.model.mistyped import near_value
from kerf.engine.scheduling.explain.tracer import NearMiss
from kerf.engine.scheduling.explain.type_filters import NEW_CLAIM_HOST, ON_OFFER, FilterKind, TypeFilter
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT, NarrowedTemplate, Template
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.topology.pod_counts import PodCount
from kerf.engine.scheduling.topology.rules import AffinityRule, Rule

POD, NODE_POOL = "pod", "node-pool"
MAX_NEAR_MISSES_SHOWN = 5
"""How many near misses a funnel names."""


def near_misses(template: Template, pod_class: PodClass, filters: Sequence[TypeFilter]) -> tuple[NearMiss, ...]:
    """The changes that would let types past the one filter that keeps them out; that for most types comes first."""
    misses = [
        *_amount_near_misses(template, pod_class, filters),
        *_requirement_near_misses(template, pod_class.requirements, filters),
        *_volume_near_misses(template, pod_class, filters),
        *_topology_near_misses(template, pod_class, filters),
    ]
    return _most_types_first(misses)


def near_misses_of_dropped_pool(
    template: Template, pod_class: PodClass, filters: Sequence[TypeFilter]
) -> tuple[NearMiss, ...]:
    """The near misses of a NodePool that has nothing to launch, whatever is asked of it (S-66). Topology and volumes
    are not looked at: the NodePool has no place anywhere."""
    return _most_types_first(
        [
            *_amount_near_misses(template, pod_class, filters),
            *_requirement_near_misses(template, pod_class.requirements, filters),
        ]
    )


def _most_types_first(misses: Iterable[NearMiss]) -> tuple[NearMiss, ...]:
    return tuple(sorted(misses, key=lambda miss: (-miss.types, miss.what, miss.key))[:MAX_NEAR_MISSES_SHOWN])


def _passing_all_but(template: Template, filters: Iterable[TypeFilter], left_out: TypeFilter) -> int:
    """The types that pass all filters but this one."""
    types = template.catalogue.everything & ~left_out.passed
    for type_filter in filters:
        if type_filter is not left_out:
            types &= type_filter.passed
    return types


def _passing_but(template: Template, filters: Iterable[TypeFilter], key: str) -> int:
    """The types that pass all filters but those about one label. Such a label also decides about offerings and places,
    so these filters are not applied either."""
    types = template.catalogue.everything
    for type_filter in filters:
        if type_filter.key != key and type_filter.kind not in (*ON_OFFER, FilterKind.VOLUMES, FilterKind.TOPOLOGY):
            types &= type_filter.passed
    return types


# ── what is an amount, or is there or not ──────────────────────────────────────


def _amount_near_misses(template: Template, pod_class: PodClass, filters: Sequence[TypeFilter]) -> Iterator[NearMiss]:
    state = template.at(template.base.requirements.merged(pod_class.requirements))
    for type_filter in (
        type_filter
        for type_filter in filters
        if type_filter.kind
        not in (FilterKind.LEFT_OUT, FilterKind.REQUIREMENT, FilterKind.VOLUMES, FilterKind.TOPOLOGY)
    ):
        asked = _beyond_limits(template, pod_class, filters) if type_filter.kind == FilterKind.LIMITS else filters
        extra = _passing_all_but(template, asked, type_filter)
        if not extra:
            continue
        nearest, short = _shortfall(template, type_filter, pod_class, extra)
        if type_filter.kind == FilterKind.RESOURCE and short >= pod_class.requests.get(type_filter.key, 0):
            continue  # they have none of it: to do without is another pod, not a near miss
        example = cheapest(template, state, nearest)
        yield NearMiss(type_filter.kind.value, nearest.bit_count(), example, type_filter.key, short=short)


def _shortfall(template: Template, type_filter: TypeFilter, pod_class: PodClass, types: int) -> tuple[int, int]:
    """The types that come nearest to passing a filter, and by how much they miss it, in the unit of the resource. If
    the filter is not about an amount: all of them, and 0."""
    catalogue = template.catalogue
    if type_filter.kind == FilterKind.RESOURCE:
        daemons = (group.requests.get(type_filter.key, 0) for group in template.groups if group.types & types)
        need = pod_class.requests.get(type_filter.key, 0) + min(daemons, default=0)
        levels = catalogue.allocatable.get(type_filter.key)
        if levels is None:
            return types, need
        most = levels.highest(types)
        return types & levels.at_least(most), max(0, need - most)
    if type_filter.kind == FilterKind.LIMITS and type_filter.key == NODES_LIMIT:
        return types, 1 - template.remaining[NODES_LIMIT]
    if type_filter.kind == FilterKind.LIMITS and type_filter.key in catalogue.capacity:
        least = min(catalogue.types[i].capacity.get(type_filter.key, 0) for i in bits(types))
        return types & catalogue.capacity[type_filter.key].at_most(least), least - template.remaining[type_filter.key]
    return types, 0


def _beyond_limits(template: Template, pod_class: PodClass, filters: Sequence[TypeFilter]) -> list[TypeFilter]:
    """The filters as they would be if limits left more. Where limits leave no node, a spread knows no domain (S-129);
    so the topology filter is worked out without limits, and does not count as a second obstacle."""
    return [
        replace(type_filter, passed=_places_beyond_limits(template, pod_class))
        if type_filter.kind == FilterKind.TOPOLOGY and not type_filter.passed
        else type_filter
        for type_filter in filters
    ]


def _places_beyond_limits(template: Template, pod_class: PodClass) -> int:
    """The types that topology would allow if limits left some of each. Volumes have a filter of their own."""
    following, demand = template.step(template.base, pod_class.requirements), pod_class.demand
    if not isinstance(following, NarrowedTemplate) or not demand.allows_host(NEW_CLAIM_HOST):
        return 0
    types = following.viable
    for key in sorted({rule.key for rule in demand.rules}):
        rules = [rule for rule in demand.rules if rule.key == key]
        present = template.domains(following, key)
        there = tuple(domain for domain in present if all(_would_know(template, following, r, domain) for r in rules))
        if present or any(rule.needs_label for rule in rules):
            types &= template.pin(following, key, there).viable if there else 0
    return types


def _would_know(template: Template, narrowed: NarrowedTemplate, rule: Rule, domain: str) -> bool:
    """Whether a rule would allow a domain in which a node of this narrowed template could be launched."""
    if domain in rule.count.counts:
        return rule.allows(domain)
    counts_here = isinstance(rule.count, PodCount) and rule.count.admits_claim(template, narrowed)
    return counts_here and _would_allow(rule, domain)


# ── what is asked of a label ──────────────────────────────────────


def _requirement_near_misses(
    template: Template, asked: Requirements, filters: Sequence[TypeFilter]
) -> Iterator[NearMiss]:
    for type_filter in (type_filter for type_filter in filters if type_filter.kind == FilterKind.REQUIREMENT):
        yield from _near_misses_of_requirement(
            template, asked, type_filter, [other for other in filters if other is not type_filter]
        )


def _near_misses_of_requirement(
    template: Template, asked: Requirements, type_filter: TypeFilter, others: Sequence[TypeFilter]
) -> Iterator[NearMiss]:
    """What would come through if the pod, or the NodePool, did not ask this of the label. Offerings are looked at anew,
    because a label also decides which of them are usable."""
    requirements = template.base.requirements.merged(asked)
    through = 0 if type_filter.passed == 0 else template.at(requirements).viable
    for side, kept, freed in _sides(template, asked, type_filter.key):
        if freed is None and (side == POD or type_filter.passed):
            continue  # this side says nothing about the label
        rest = requirements.without([type_filter.key])
        state = template.at(rest.merged([kept]) if kept is not None else rest)
        extra = state.viable & ~through
        for other in others:
            if other.kind not in ON_OFFER:
                extra &= other.passed
        if extra:
            values = _values_needed(template, state, type_filter.key, extra, freed, kept)
            example = cheapest(template, state, extra)
            meant = likely_meant(template, freed, values, kept)
            yield NearMiss(
                FilterKind.REQUIREMENT.value,
                extra.bit_count(),
                example,
                type_filter.key,
                values,
                side=side,
                meant=meant,
            )


def _sides(
    template: Template, asked: Requirements, key: str
) -> tuple[tuple[str, Requirement | None, Requirement | None], ...]:
    """Who would have to change, what the other side asks of the label, and what this side asks itself."""
    of_pool, of_pod = template.base.requirements.find(key), asked.find(key)
    return (POD, of_pool, of_pod), (NODE_POOL, of_pod, of_pool)


def _values_needed(
    template: Template,
    narrowed: NarrowedTemplate,
    key: str,
    types: int,
    freed: Requirement | None,
    kept: Requirement | None,
) -> tuple[str, ...]:
    """The label values that the side that changes would have to allow: those of the types' offerings; else of the
    types; else, for a label that types do not know, those that the other side asks for. Instance types come cheapest
    first."""
    offered = {
        value
        for number in narrowed.slots
        if template.available[number] & types
        for requirement in template.slots[number].requirements()
        if requirement.key == key
        for value in requirement.values
    }
    index = template.catalogue.labels.get(key)
    known = {value for value, mask in index.values.items() if mask & types} if index else set()
    other = set(kept.values) if kept is not None and not kept.complement else set()
    values = offered or known or other
    needed = {v for v in values if (freed is None or not freed.has(v)) and (kept is None or kept.has(v))}
    if key == INSTANCE_TYPE:
        names = template.catalogue.names
        return tuple(names[number] for _, number in template.by_price(narrowed) if names[number] in needed)
    return _ordered(needed, freed)


def _ordered(values: set[str], freed: Requirement | None) -> tuple[str, ...]:
    """The values in order: numbers by size, beginning at the bound that keeps them out; names by the alphabet."""
    if not all(parse_integer(value) is not None for value in values):
        return tuple(sorted(values))
    upwards = tuple(sorted(values, key=int))
    return upwards[::-1] if freed is not None and freed.gte is not None else upwards


def likely_meant(
    template: Template, asked: Requirement | None, values: Sequence[str], kept: Requirement | None = None
) -> tuple[str, ...]:
    """The values that a typing error may stand for: similar to a value that is asked for and that no type has (or, for
    a label that types do not know, not the other side, `kept`). Only values that would help."""
    if asked is None or asked.complement:
        return ()
    index = template.catalogue.labels.get(asked.key)
    known = index.values.keys() if index is not None else kept.values if kept is not None else ()
    similar = {near_value(value, known) for value in asked.values if value not in known}
    return tuple(sorted(similar & set(values)))


def cheapest(template: Template, narrowed: NarrowedTemplate, types: int) -> str:
    """The name of the cheapest of some types, by what a node of this narrowed template costs. If all are sold out, by
    what they cost otherwise; else the first by name."""
    there = template.by_price(narrowed)
    if template.cheapest(narrowed, types) == inf:
        there = template.catalogue.by_price(tuple((slot, template.catalogue.everything) for slot in narrowed.slots))
    return template.catalogue.names[next(number for _, number in there if types >> number & 1)]


# ── where ──────────────────────────────────────


def _volume_near_misses(template: Template, pod_class: PodClass, filters: Sequence[TypeFilter]) -> Iterator[NearMiss]:
    """The near misses over volumes: the pod, or the NodePool, would allow the places of the volumes."""
    base = template.step(template.base, pod_class.requirements)
    if not any(
        type_filter.kind == FilterKind.VOLUMES and not type_filter.passed for type_filter in filters
    ) or not isinstance(base, NarrowedTemplate):
        return
    reported = set()
    for alternative in pod_class.demand.alternatives:
        conflicts = template.step(base, alternative)
        keys = {conflict.key for conflict in conflicts} if isinstance(conflicts, tuple) else set()
        if len(keys) != 1:
            continue  # it takes more than one change, or another one
        (key,) = keys
        types = _passing_but(template, filters, key)
        there = alternative.get(key).values
        for side, kept, freed in _sides(template, pod_class.requirements, key):
            if freed is None or (side, key, there) in reported or (kept is not None and not there & kept.values):
                continue
            reported.add((side, key, there))
            state = template.at(base.requirements.without([key]).merged(alternative))
            miss = NearMiss(FilterKind.REQUIREMENT.value, 0, "", key, side=side)
            yield from _through(template, state, tuple(sorted(there)), types, miss)


def _topology_near_misses(template: Template, pod_class: PodClass, filters: Sequence[TypeFilter]) -> Iterator[NearMiss]:
    """The near misses over topology: the rules of one kind would allow another domain; or the pod, or the NodePool,
    would allow a domain that the rules leave."""
    following = template.step(template.base, pod_class.requirements)
    if not isinstance(following, NarrowedTemplate):
        return
    left = template.catalogue.everything
    for type_filter in filters:
        left &= left if type_filter.kind == FilterKind.TOPOLOGY else type_filter.passed
    for rule in pod_class.demand.host_rules:
        if left and not rule.allows(NEW_CLAIM_HOST):
            yield NearMiss(
                FilterKind.TOPOLOGY.value,
                left.bit_count(),
                cheapest(template, following, left),
                rule.key,
                side=rule.kind,
            )
    for key in sorted({rule.key for rule in pod_class.demand.rules}):
        rules = [rule for rule in pod_class.demand.rules if rule.key == key]
        present = template.domains(following, key)
        if any(all(rule.allows(domain) for rule in rules) for domain in present):
            continue
        for kind in sorted({rule.kind for rule in rules}):
            others = [rule for rule in rules if rule.kind != kind]
            freed = tuple(domain for domain in present if all(other.allows(domain) for other in others))
            yield from _through(
                template, following, freed, left, NearMiss(FilterKind.TOPOLOGY.value, 0, "", key, side=kind)
            )
        yield from _elsewhere(template, pod_class, rules, _passing_but(template, filters, key))


def _elsewhere(template: Template, pod_class: PodClass, rules: Sequence[Rule], types: int) -> Iterator[NearMiss]:
    """The domains that all rules over one key leave, but pod or NodePool do not allow."""
    key = rules[0].key
    rest = template.base.requirements.merged(pod_class.requirements).without([key])
    for side, kept, freed in _sides(template, pod_class.requirements, key):
        if freed is None:
            continue
        narrowed = template.at(rest.merged([kept]) if kept is not None else rest)
        domains = template.domains(narrowed, key)
        there = tuple(
            domain for domain in domains if not freed.has(domain) and all(_would_allow(r, domain) for r in rules)
        )
        yield from _through(
            template, narrowed, there, types, NearMiss(FilterKind.REQUIREMENT.value, 0, "", key, side=side)
        )


def _would_allow(rule: Rule, domain: str) -> bool:
    """Whether a rule allows a domain, also one that counts nothing yet because no node can be there. Such a domain is
    empty, so a rule that follows other pods does not allow it."""
    return rule.allows(domain) or (domain not in rule.count.counts and not isinstance(rule, AffinityRule))


def _through(
    template: Template, narrowed: NarrowedTemplate, domains: tuple[str, ...], types: int, miss: NearMiss
) -> Iterator[NearMiss]:
    """The near miss, if some of the types can be had in these domains."""
    if not domains:
        return
    pinned = template.pin(narrowed, miss.key, domains)
    types_through = pinned.viable & types
    if types_through:
        yield replace(
            miss, types=types_through.bit_count(), example=cheapest(template, pinned, types_through), values=domains
        )
