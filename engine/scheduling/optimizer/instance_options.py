"""The instance types that pods could be put on, with prices: what the search and the lower bound look at.

Nothing is decided here: whatever rests on it is planned again by the planner.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from operator import gt, le

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import HostPort, Resources, Toleration
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template, template_of
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.matching.taints import untolerated
from kerf.engine.scheduling.planner import STRICT, usable_pools
from kerf.engine.scheduling.problem.problem import Problem

NodeDemands = tuple[Requirements, tuple[Toleration, ...], int]
"""What pods ask of a node, apart from room: requirements, tolerations, and the weight of the NodePool."""

NodeLimit = tuple[str, str, int]
"""How many pods may be on one node of some that keep apart: the namespace and shape of one of them, and the number."""

TypeOfTemplate = tuple[int, int]
"""A template and a type, by number."""


class PodKind(Struct, frozen=True, cache_hash=True):
    """Pods that may take each other's places, because their requests and demands are equal.

    `amounts`: their requests, in the order of `InstanceOptions.resources`. `weight`: that of the NodePools they may go
    to. `labels`: what their nodes must be bound to. `max_per_node`: how many of them, and others, may be on one node.
    `related`: rules between pods concern them.
    """

    amounts: tuple[int, ...]
    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...] = ()
    weight: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    max_per_node: NodeLimit | None = None
    related: bool = False

    @property
    def demands(self) -> NodeDemands:
        """What the pods ask of a node, apart from room."""
        return self.requirements, self.tolerations, self.weight


class InstanceOption(Struct, frozen=True):
    """A type that a pod could open a node of: the template and the type, by number, the price in USD per hour, the
    template as the pod's requirements narrow it, and the room for pods."""

    template: int
    type_number: int
    price: float
    narrowed: NarrowedTemplate
    room: tuple[int, ...]


class InstanceOptions:
    """The templates of a problem's NodePools (and their numbers, by name), and what a node of each type leaves for pods
    beside its DaemonSets. `resources`: all that any pod requests, in the order in which amounts are given.

    Most NodePools differ in neither: what follows from that alone is worked out for one of them."""

    def __init__(self, problem: Problem) -> None:
        shapes = {pod.shape for pod in problem.pods}
        self.resources = tuple(sorted({"pods", *(name for shape in shapes for name in problem.shapes[shape].requests)}))
        daemon_sets = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        templates = [
            template_of(pool, problem, daemon_sets, strict=problem.settings.min_values_policy == STRICT)
            for pool in usable_pools(problem.pools)
        ]
        self.templates = tuple(template for template in templates if template.types)
        self.numbers = {template.name: number for number, template in enumerate(self.templates)}
        first: dict[Hashable, int] = {}
        self._alike = [first.setdefault(_rooms_follow_from(each), number) for number, each in enumerate(self.templates)]
        self._rooms: list[dict[int, tuple[int, ...]]] = []
        for number in range(len(self.templates)):
            self._rooms.append(self._rooms_of(number))
        self._fronts: dict[Hashable, tuple[int, ...]] = {}
        self._choices: dict[NodeDemands, tuple[InstanceOption, ...]] = {}

    def amounts(self, requests: Resources) -> tuple[int, ...]:
        """The requests of one pod, which also counts as one of the resource `pods`."""
        return tuple(1 if name == "pods" else requests.get(name, 0) for name in self.resources)

    def room(self, template: int, type_number: int) -> tuple[int, ...]:
        """What a node of a type leaves for pods; never below 0."""
        return self._rooms[template][type_number]

    def narrowed(self, number: int, kind: PodKind, start: NarrowedTemplate | None = None) -> NarrowedTemplate | None:
        """A template (by number) narrowed by what such pods ask, further than `start`; None if they do not tolerate its
        taints, or no type meets what they ask."""
        template = self.templates[number]
        if untolerated(template.pool.taints, kind.tolerations):
            return None
        narrowed = template.step(start or template.base, kind.requirements)
        return narrowed if isinstance(narrowed, NarrowedTemplate) and narrowed.viable & template.types else None

    def narrowed_templates(self, kind: PodKind, *, any_weight: bool = False) -> dict[int, NarrowedTemplate]:
        """The templates (by number) that such pods can go to, as their demands narrow them. Only those of NodePools of
        the kind's weight, unless `any_weight`."""
        templates = enumerate(self.templates)
        numbers = [number for number, template in templates if any_weight or template.pool.weight == kind.weight]
        found = ((number, self.narrowed(number, kind)) for number in numbers)
        return {number: narrowed for number, narrowed in found if narrowed is not None}

    def prices(self, number: int, narrowed: NarrowedTemplate) -> dict[int, float]:
        """The price of the cheapest available offering of each type, in USD per hour."""
        template = self.templates[number]
        key = "prices", narrowed.slots
        prices: dict[int, float] | None = template.worked_out.get(key)
        if prices is None:
            order = template.by_price(narrowed)
            prices = {type_number: price for price, type_number in order if math.isfinite(price)}
            template.worked_out[key] = prices
        return prices

    def offers(self, number: int, narrowed: NarrowedTemplate) -> int:
        """What a template (by number) can be launched as: a bit for every template, slot and type."""
        template = self.templates[number]
        width = len(template.catalogue.types)
        place = sum(len(earlier.slots) * len(earlier.catalogue.types) for earlier in self.templates[:number])
        prices = sum(1 << type_number for type_number in self.prices(number, narrowed))
        types = narrowed.viable & template.types & prices
        return sum((template.available[slot] & types) << place + slot * width for slot in narrowed.slots)

    def choices(self, kind: PodKind) -> tuple[InstanceOption, ...]:
        """The options for such pods, cheapest first, without those that have no more of any resource than another that
        costs no more."""
        choices = self._choices.get(kind.demands)
        if choices is None:
            narrowed = self.narrowed_templates(kind)
            options = [option for number, template in narrowed.items() for option in self.front(number, template)]
            several = _without_dominated(options) if len(narrowed) > 1 else options
            choices = self._choices[kind.demands] = tuple(several)
        return choices

    def front(self, number: int, narrowed: NarrowedTemplate) -> list[InstanceOption]:
        """The options in one narrowed template (by number), cheapest first, without dominated ones. The template keeps
        which types these are from one problem to the next."""
        template = self.templates[number]
        key = "front", self.resources, narrowed.slots, narrowed.viable
        types: tuple[int, ...] | None = template.worked_out.get(key)
        if types is None:
            types = template.worked_out[key] = self._front(number, narrowed)
        return list(self._options_of(types, number, narrowed))

    def _front(self, number: int, narrowed: NarrowedTemplate) -> tuple[int, ...]:
        """The types that are not dominated: those of another template of equal rooms and offers, if there is one."""
        template = self.templates[number]
        possible = narrowed.viable & template.types
        offers = tuple([template.available[slot] & possible for slot in narrowed.slots])
        key = self._alike[number], narrowed.slots, offers
        types = self._fronts.get(key)
        if types is None:
            options = self._options_of(bits(possible), number, narrowed)
            types = self._fronts[key] = tuple([option.type_number for option in _without_dominated(options)])
        return types

    def _options_of(self, types: Iterable[int], number: int, narrowed: NarrowedTemplate) -> Iterator[InstanceOption]:
        """Those of the types that are on offer."""
        prices, rooms = self.prices(number, narrowed), self._rooms[number]
        for each in types:
            if each in prices:
                yield InstanceOption(number, each, prices[each], narrowed, rooms[each])

    def _rooms_of(self, number: int) -> dict[int, tuple[int, ...]]:
        template, first = self.templates[number], self._alike[number]
        key = "rooms", self.resources
        rooms: dict[int, tuple[int, ...]] | None = template.worked_out.get(key)
        if rooms is None:
            made = self._rooms[first] if first < number else self._rooms_made(template)
            rooms = template.worked_out[key] = made
        return rooms

    def _rooms_made(self, template: Template) -> dict[int, tuple[int, ...]]:
        rooms = {}
        for group in template.groups:
            for number in bits(group.types):
                free = added(template.catalogue.types[number].allocatable(), group.requests, -1)
                rooms[number] = tuple(max(0, free.get(name, 0)) for name in self.resources)
        return rooms


def _rooms_follow_from(template: Template) -> Hashable:
    """What the room on nodes of a template follows from: the types, and what their DaemonSets request."""
    groups = [(group.types, tuple(sorted(group.requests.items()))) for group in template.groups]
    return template.catalogue, tuple(groups)


def _without_dominated(given: Iterable[InstanceOption]) -> Iterator[InstanceOption]:
    """The options, cheapest first, without those that have no more of any resource than another that costs no more."""
    kept: list[tuple[int, ...]] = []
    most: tuple[int, ...] = ()
    for option in sorted(given, key=lambda each: (each.price, each.template, each.type_number)):
        room = option.room
        larger = not kept or any(map(gt, room, most))  # in one resource larger than all before
        if larger or not any(all(map(le, room, other)) for other in kept):
            kept.append(room)
            most = tuple(map(max, most, room)) if most else room
            yield option
