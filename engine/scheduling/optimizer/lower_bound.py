"""The lower bound of a plan's new capacity, from what its pods could be put on."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, PodKind, all_options
from kerf.engine.scheduling.optimizer.linear_relaxation import PricedNode, resource_prices
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.problem.problem import PendingPod, Problem

TypeOfTemplate = tuple[int, int]
"""A template and a type, by number."""


class _PodCrowd(Struct, frozen=True):
    """Pods with equal demands: what they request together, at what price each node type comes for them, and
    `offers`, the set of (template, slot, type) that they could use, as a bitset."""

    demand: tuple[int, ...]
    prices: dict[TypeOfTemplate, float]
    offers: int


def lower_bound(problem: Problem, menu: InstanceOptions, pods: Iterable[PendingPod]) -> float:
    """No nodes that take these pods cost less together, USD per hour; 0.0 if nothing can be said.

    Sound because every constraint is only ever loosened: preferences, topology, volumes, limits and alternatives of
    node affinity are left out. Crowds that share no offer can share no node, so their bounds add up.
    """
    bound = 0.0
    for crowds in _in_disjoint_sets(_crowds(problem, menu, pods)):
        together = _bound_of_crowds(menu, crowds)
        alone = sorted(((_bound_of_crowds(menu, [each]), each.offers) for each in crowds), reverse=True)
        taken, total = 0, []
        for value, offers in alone if len(crowds) > 1 else ():
            if not taken & offers:
                taken |= offers
                total.append(value)
        bound += max(together, math.fsum(total))
    return bound


def _bound_of_crowds(menu: InstanceOptions, crowds: list[_PodCrowd]) -> float:
    """Of the pods of some crowds, that may share nodes."""
    prices: dict[TypeOfTemplate, float] = {}
    for crowd in crowds:
        for node, price in crowd.prices.items():
            prices[node] = min(price, prices.get(node, price))
    rows = [PricedNode(price, menu.room(*node)) for node, price in sorted(prices.items())]
    return resource_prices(
        rows, [sum(amounts) for amounts in zip(*(each.demand for each in crowds), strict=True)]
    ).total


def _in_disjoint_sets(crowds: list[_PodCrowd]) -> list[list[_PodCrowd]]:
    """The crowds in sets that share no offer with one another."""
    sets: list[tuple[int, list[_PodCrowd]]] = []
    for crowd in crowds:
        touching = [each for each in sets if each[0] & crowd.offers]
        sets = [each for each in sets if not each[0] & crowd.offers]
        offers, members = crowd.offers, [crowd]
        for mask, others in touching:
            offers |= mask
            members = [*others, *members]
        sets.append((offers, members))
    return [members for _, members in sets]


def _crowds(problem: Problem, menu: InstanceOptions, pods: Iterable[PendingPod]) -> list[_PodCrowd]:
    demands: dict[tuple[object, ...], tuple[PodKind, list[int]]] = {}
    for pod in sorted(pods, key=lambda each: each.uid):
        kind = loosened(problem.shapes[pod.shape], menu)
        _, total = demands.setdefault(kind.demands, (kind, [0] * len(kind.amounts)))
        total[:] = [a + b for a, b in zip(total, kind.amounts, strict=True)]
    return [_crowd(menu, kind, total) for kind, total in demands.values()]


def loosened(shape: PodShape, menu: InstanceOptions) -> PodKind:
    """What the pod asks for at the least: one of several alternatives is as if there were none."""
    if len(shape.required_terms) > 1:
        shape = replace(shape, required_terms=())
    requirements = requirements_of(shape, preferences=False)
    return PodKind(menu.amounts(shape.requests), requirements, (*shape.tolerations, TOLERATES_PREFER_NO_SCHEDULE))


def _crowd(menu: InstanceOptions, kind: PodKind, total: list[int]) -> _PodCrowd:
    prices: dict[TypeOfTemplate, float] = {}
    offers = 0
    for way in all_options(menu, kind, any_weight=True):
        prices[way.template, way.kind] = way.price
        for slot in way.state.slots:
            if menu.templates[way.template].available[slot] >> way.kind & 1:
                offers |= 1 << menu.position(way.template, slot, way.kind)
    return _PodCrowd(tuple(total), prices, offers)
