"""What pods could be put on, and at what price: the view that improving a plan and bounding its price share.

Nothing here decides anything; a plan that rests on it is planned again by the planner itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import HostPort, Resources, Toleration
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template, template_of
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.matching.taints import untolerated
from kerf.engine.scheduling.planner import STRICT, usable_pools
from kerf.engine.scheduling.problem.problem import Problem

NodeDemands = tuple[Requirements, tuple[Toleration, ...], int]


class PodKind(Struct, frozen=True, cache_hash=True):
    """Pods that may take each other's places: equal requests (`amounts`, in the order of `Menu.resources`) and
    equal demands. `weight` is that of the NodePools they may go to. `labels` are what their nodes have to be bound to
    and `attached` says that other pods matter to them or they to others; `apart`: so many of this namespace and shape,
    at most, may be on one node."""

    amounts: tuple[int, ...]
    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...] = ()
    weight: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    apart: tuple[str, str, int] | None = None
    attached: bool = False

    @property
    def demands(self) -> NodeDemands:
        """What it asks of a node, apart from room."""
        return self.requirements, self.tolerations, self.weight


class InstanceOption(Struct, frozen=True):
    """A type that a pod could open a node of: type `kind` of template `template`, at a price, in a state."""

    template: int
    kind: int
    price: float
    state: NarrowedTemplate


class InstanceOptions:
    """The NodePools of a problem with what a node of each type leaves for pods, beside its daemons."""

    def __init__(self, problem: Problem, resources: tuple[str, ...]) -> None:
        """`resources`: the names that amounts are given for; all that any pod requests."""
        self.resources = resources
        given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        made = [
            template_of(each, problem, given, strict=problem.settings.min_values_policy == STRICT)
            for each in usable_pools(problem.pools)
        ]
        self.templates = tuple(each for each in made if each.types)
        self._rooms = tuple(self._rooms_of(each) for each in self.templates)
        self._prices: dict[tuple[int, tuple[int, ...]], dict[int, float]] = {}
        self._choices: dict[NodeDemands, tuple[InstanceOption, ...]] = {}

    def amounts(self, requests: Resources) -> tuple[int, ...]:
        """Requests of one pod, which is one of the resource `pods`."""
        return tuple(1 if name == "pods" else requests.get(name, 0) for name in self.resources)

    def room(self, number: int, kind: int) -> tuple[int, ...]:
        """What a node of type `kind` of template `number` leaves for pods; never below 0."""
        return self._rooms[number][kind]

    def state(
        self, number: int, requirements: Requirements, start: NarrowedTemplate | None = None
    ) -> NarrowedTemplate | None:
        """Template `number` narrowed (further) by requirements, None if they cannot hold there."""
        template = self.templates[number]
        found = template.step(start or template.state, requirements)
        return found if isinstance(found, NarrowedTemplate) and found.viable & template.types else None

    def tolerated(self, number: int, wanted: PodKind) -> bool:
        return not untolerated(self.templates[number].pool.taints, wanted.tolerations)

    def prices(self, number: int, state: NarrowedTemplate) -> dict[int, float]:
        """Per type of the state its cheapest available offering, USD per hour."""
        template = self.templates[number]
        key = number, state.slots
        found = self._prices.get(key)
        if found is None:
            order = template.by_price(state)
            found = self._prices[key] = {kind: price for price, kind in order if math.isfinite(price)}
        return found

    def position(self, number: int, slot: int, kind: int) -> int:
        """A number for every (template, slot, type)."""
        before = sum(len(each.slots) * len(each.catalogue.types) for each in self.templates[:number])
        return before + slot * len(self.templates[number].catalogue.types) + kind

    def choices(self, wanted: PodKind) -> tuple[InstanceOption, ...]:
        """The ways for pods of such demands to NodePools of their weight that are worth a thought, cheapest first."""
        found = self._choices.get(wanted.demands)
        if found is None:
            found = self._choices[wanted.demands] = without_dominated(self, all_options(self, wanted))
        return found

    def _rooms_of(self, template: Template) -> dict[int, tuple[int, ...]]:
        types = template.catalogue.types
        rooms = {}
        for group in template.groups:
            for kind in bits(group.types):
                free = types[kind].allocatable()
                rooms[kind] = tuple(max(0, free.get(name, 0) - group.requests.get(name, 0)) for name in self.resources)
        return rooms


def all_options(menu: InstanceOptions, wanted: PodKind, *, any_weight: bool = False) -> Iterator[InstanceOption]:
    """All ways for pods of such demands, whether or not there is room, by template and type; only those of NodePools
    of its weight, unless `any_weight`."""
    for number, template in enumerate(menu.templates):
        weighted = any_weight or template.pool.weight == wanted.weight
        state = menu.state(number, wanted.requirements) if weighted and menu.tolerated(number, wanted) else None
        if state is None:
            continue
        prices = menu.prices(number, state)
        for kind in bits(state.viable & template.types):
            if kind in prices:
                yield InstanceOption(number, kind, prices[kind], state)


def without_dominated(menu: InstanceOptions, given: Iterable[InstanceOption]) -> tuple[InstanceOption, ...]:
    """Cheapest first, without those that have no more of anything than another that costs no more."""
    kept: list[tuple[InstanceOption, tuple[int, ...]]] = []
    for way in sorted(given, key=lambda each: (each.price, each.template, each.kind)):
        room = menu.room(way.template, way.kind)
        if not any(all(a <= b for a, b in zip(room, other, strict=True)) for _, other in kept):
            kept.append((way, room))
    return tuple(way for way, _ in kept)
