"""Near misses of topology: what single change would let types through that pass everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from kerf.engine.model.mistyped import near_value
from kerf.engine.scheduling.podclass import PodClass
from kerf.engine.scheduling.requirements import Requirement, Requirements
from kerf.engine.scheduling.templates import State, Template
from kerf.engine.scheduling.topology.rules import Rule
from kerf.engine.scheduling.trace import NearMiss

TOPOLOGY, REQUIREMENT = "topology", "requirement"
POD, NODE_POOL = "pod", "node-pool"
NEW_HOST = -1
"""The hostname of a claim that is not opened: nothing is counted there."""


def near_topology(
    template: Template, wanted: PodClass, left: int, passing_but: Callable[[str], int]
) -> Iterator[NearMiss]:
    """If the rules of one kind allowed another domain, or the pod or the NodePool one that the rules leave. `left`: the
    types that pass everything else; `passing_but`: those that do but for what is asked of a label."""
    following = template.step(template.state, wanted.requirements)
    if not isinstance(following, State):
        return
    for rule in wanted.demand.host_rules:
        if left and not rule.allows(NEW_HOST):
            yield NearMiss(TOPOLOGY, left.bit_count(), cheapest(template, left), rule.key, side=rule.kind)
    for key in sorted({each.key for each in wanted.demand.rules}):
        rules = [each for each in wanted.demand.rules if each.key == key]
        present = template.domains(following, key)
        if any(all(rule.allows(each) for rule in rules) for each in present):
            continue
        for kind in sorted({each.kind for each in rules}):
            others = [each for each in rules if each.kind != kind]
            freed = tuple(each for each in present if all(other.allows(each) for other in others))
            yield from _through(template, following, freed, left, NearMiss(TOPOLOGY, 0, "", key, side=kind))
        yield from _elsewhere(template, wanted, rules, passing_but(key))


def _elsewhere(template: Template, wanted: PodClass, rules: Sequence[Rule], types: int) -> Iterator[NearMiss]:
    """The domains that all rules over one key leave, and that pod or NodePool do not allow."""
    key = rules[0].key
    rest = template.state.requirements.merged(wanted.requirements).without([key])
    own, asked = template.state.requirements.find(key), wanted.requirements.find(key)
    for side, kept, freed in ((POD, own, asked), (NODE_POOL, asked, own)):
        if freed is None:
            continue
        state = template.at(rest.merged([kept]) if kept is not None else rest)
        there = tuple(
            each
            for each in template.domains(state, key)
            if not freed.has(each) and all(rule.allows(each) or each not in rule.count.counts for rule in rules)
        )
        yield from _through(template, state, there, types, NearMiss(REQUIREMENT, 0, "", key, side=side))


def _through(
    template: Template, state: State, domains: tuple[str, ...], types: int, miss: NearMiss
) -> Iterator[NearMiss]:
    """The miss, if some of the types can be had in these domains."""
    found = template.pin(state, miss.key, domains).viable & types if domains else 0
    if found:
        yield replace(miss, types=found.bit_count(), example=cheapest(template, found), values=domains)


def likely(template: Template, asked: Requirement | None, values: Sequence[str]) -> tuple[str, ...]:
    """Which of the values that would do may have been meant by those that were asked for and that no type has."""
    index = template.catalogue.labels.get(asked.key) if asked is not None else None
    if asked is None or asked.complement or index is None:
        return ()
    found = {near_value(value, values) for value in asked.values if value not in index.values}
    return tuple(sorted(found - {""}))


def cheapest(template: Template, types: int) -> str:
    """The name of the cheapest of some types by any available offering, else the first by name."""
    order = template.by_price(template.at(Requirements()))
    return template.catalogue.names[next(number for _, number in order if types >> number & 1)]
