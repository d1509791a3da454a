"""The lower bound of the price of a plan's new nodes, from what its pods could be put on."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, PodKind, TypeOfTemplate
from kerf.engine.scheduling.optimizer.linear_relaxation import PricedNode, ResourcePrices, resource_prices
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.problem.problem import Problem


class _PodCrowd(Struct, frozen=True):
    """Pods with equal demands: what they request together, the price of each node type for them but for dominated ones
    (which cannot change the bound), and the `offers` that they could use: a bit set of (template, slot, type)."""

    demand: tuple[int, ...]
    prices: dict[TypeOfTemplate, float]
    offers: int


class PriceBounds:
    """What the pods that a plan puts on new nodes cost at least, and what these nodes are worth."""

    def __init__(self, problem: Problem, options: InstanceOptions, planned: Plan) -> None:
        self._options, self._planned = options, planned
        self._crowds = _crowds(problem, options, planned)

    @cached_property
    def lower(self) -> float:
        """A price that no nodes for these pods can undercut together, USD per hour; 0.0 if nothing can be said.

        Constraints are only loosened, never tightened: preferences, topology, volumes, limits and alternatives of node
        affinity are left out. Crowds that have no offer in common cannot share a node, so their bounds add up.
        """
        bound = 0.0
        for crowds in _in_disjoint_sets(self._crowds):
            together = _unit_prices(self._options, crowds).total
            alone = [(_unit_prices(self._options, [crowd]).total, crowd.offers) for crowd in crowds if len(crowds) > 1]
            taken, disjoint = 0, []
            for value, offers in sorted(alone, reverse=True):
                if not taken & offers:
                    taken |= offers
                    disjoint.append(value)
            bound += max(together, math.fsum(disjoint))
        return bound

    @cached_property
    def worth(self) -> float:
        """What the room of the nodes would cost at the prices of the lower bound, USD per hour. Nodes that cost hardly
        more are of good types: others would hardly be cheaper, however the pods are put on them."""
        options, units = self._options, _unit_prices(self._options, self._crowds)
        nodes = Counter((options.numbers[claim.node_pool], claim.instance_types[0]) for claim in self._planned.claims)
        return math.fsum(
            count * units.value(options.room(number, options.templates[number].catalogue.numbers[name]))
            for (number, name), count in nodes.items()
        )


def _unit_prices(options: InstanceOptions, crowds: list[_PodCrowd]) -> ResourcePrices:
    """The prices of resources, and their bound, for the pods of some crowds, which may share nodes."""
    prices: dict[TypeOfTemplate, float] = {}
    for crowd in crowds:
        for node, price in crowd.prices.items():
            prices[node] = min(price, prices.get(node, price))
    nodes = [PricedNode(price, options.room(*node)) for node, price in sorted(prices.items())]
    demand = list(map(sum, zip(*(crowd.demand for crowd in crowds), strict=True)))
    return resource_prices(nodes, demand)


def _in_disjoint_sets(crowds: list[_PodCrowd]) -> list[list[_PodCrowd]]:
    """The crowds in sets that have no offer in common with one another."""
    sets: list[tuple[int, list[_PodCrowd]]] = []
    for crowd in crowds:
        offers, members, apart = crowd.offers, [crowd], []
        for other in sets:
            if other[0] & crowd.offers:
                offers, members = offers | other[0], [*other[1], *members]
            else:
                apart.append(other)
        sets = [*apart, (offers, members)]
    return [members for _, members in sets]


def _crowds(problem: Problem, options: InstanceOptions, planned: Plan) -> list[_PodCrowd]:
    """The crowds of the pods that the plan puts on new nodes."""
    counts = Counter([problem.pod_of[uid].shape for uid in sorted(planned.on_new_nodes)])
    demands: dict[tuple[object, ...], tuple[PodKind, list[int]]] = {}
    for shape, count in counts.items():
        kind = loosened(problem.shapes[shape], options)
        _, total = demands.setdefault(kind.demands, (kind, [0] * len(kind.amounts)))
        total[:] = [a + count * b for a, b in zip(total, kind.amounts, strict=True)]
    return [_crowd(options, kind, total) for kind, total in demands.values()]


def loosened(shape: PodShape, options: InstanceOptions) -> PodKind:
    """What a pod asks for at the least: several alternative terms of node affinity count as none."""
    if len(shape.required_terms) > 1:
        shape = replace(shape, required_terms=())
    requirements = requirements_of(shape, preferences=False)
    return PodKind(options.amounts(shape.requests), requirements, (*shape.tolerations, TOLERATES_PREFER_NO_SCHEDULE))


def _crowd(options: InstanceOptions, kind: PodKind, total: list[int]) -> _PodCrowd:
    prices: dict[TypeOfTemplate, float] = {}
    offers = 0
    for number, narrowed in options.narrowed_templates(kind, any_weight=True).items():
        prices |= {(number, option.type_number): option.price for option in options.front(number, narrowed)}
        offers |= options.offers(number, narrowed)
    return _PodCrowd(tuple(total), prices, offers)
