"""Splits pods into groups, each meant for one node of one type, so that the sum of prices is low.

It is greedy, by what requests are worth. The cheapest mixture of types (`linear_relaxation`) gives a unit of each
resource a price, and so every pod a value. A group begins with a pod that has few types to go to. Of these types the
one is taken that costs least for the value of the pods on it, and the group is repeated while there are pods for it.
Pods are added that suit what is left of the node: one that is short of memory gets pods that want CPU. A first-fit
order cannot do that.

Pods of which few may be on one node need many nodes, whatever these cost. Groups begin with them, and each such node
gets its share of all other pods: else the first nodes would take what the others could be filled up with. The pods are
also grouped without that, and the cheaper groups count.

The result is a proposal: the planner plans every group again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import le, mul, sub
from typing import NamedTuple

from msgspec import Struct

from kerf.engine.scheduling.launchable.templates import NarrowedTemplate
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.instance_options import InstanceOption, InstanceOptions, NodeDemands, PodKind
from kerf.engine.scheduling.optimizer.linear_relaxation import PricedNode, ResourcePrices, resource_prices

TYPES_TRIED = (2, 8, 32)
"""How many types are tried for one group: first few, then more, as far as the effort goes."""
WIDTH_GROWTH = 4
"""The next of these takes at most so many times the touches of the one before."""
SHARE_KEPT = 3
"""One regrouping leaves one part in so many of the effort. It may take most, as it gains most among many types."""
PICKS_PER_GROUP = 3
"""How often, about, the kinds of pods are looked at for one group."""
MAX_KINDS_CONSIDERED = 48
"""How many kinds of pods are considered for a place in a group."""
REPRICE_BELOW = 0.5
"""Resources are priced anew when the pods that are left are worth less than this part of those at the last pricing."""


class PodGroup(Struct, frozen=True):
    """Pods for one node: the template and the type (by number), the price in USD per hour, and how many pods of which
    kind (by index)."""

    template: int
    type_number: int
    price: float
    counts: tuple[tuple[int, int], ...]


class Grouped(NamedTuple):
    """What was found for some pods: the groups, None if some pod has no place, and the touches that it took."""

    groups: list[PodGroup] | None
    touches: int


Known = dict[tuple[tuple[PodKind, ...], tuple[int, ...], int, bool], Grouped]
"""What was found, by kinds of pods, how many there are of each, how many types were tried, and whether pods are shared
among nodes."""


class Regrouping:
    """One regrouping of some kinds of pods. Every kind must have a type that it fits on."""

    def __init__(
        self, options: InstanceOptions, kinds: Sequence[PodKind], counts: Sequence[int], known: Known | None = None
    ) -> None:
        """`counts`: how many pods there are of each kind. `known`: what regroupings among the same options found. It is
        taken from there at the price in touches that it had, and added to."""
        self._options = options
        self._known = {} if known is None else known
        self._kinds = kinds
        self._counts = tuple(counts)
        self._left = list(counts)
        self._types_tried, self._shared = 0, False
        self._touches = 0
        self._prices = ResourcePrices((), 0.0)
        self._value_when_priced = 0.0
        self._compatible: dict[NodeDemands, list[int]] = {}

    def groups(self, effort: Effort) -> list[PodGroup] | None:
        """The cheapest groups found; None if some pod has no place, or the effort is too little for one try."""
        best: list[PodGroup] | None = None
        kinds_looked_at = sum(
            min(len(self._compatible_with(kind)), MAX_KINDS_CONSIDERED) for kind in range(len(self._kinds))
        )
        expected_touches = PICKS_PER_GROUP * kinds_looked_at * TYPES_TRIED[0]
        # Pods are shared among nodes that are needed anyway, or not: both is tried with few types, then the cheaper.
        ways: tuple[bool, ...] = (True, False) if any(kind.max_per_node for kind in self._kinds) else (False,)
        for types_tried in TYPES_TRIED:
            prices: dict[bool, float] = {}
            touches = 0
            for shared in ways:
                most = effort.left - effort.left // SHARE_KEPT
                if expected_touches > most:
                    return best
                groups, touches = self._grouped(types_tried, shared, most)
                effort.charge(touches)
                if groups is None:
                    return best
                prices[shared] = _total_price(groups)
                if best is None or prices[shared] < _total_price(best):
                    best = groups
            if all(len(self._options.choices(kind)) <= types_tried for kind in self._kinds):
                break
            expected_touches = WIDTH_GROWTH * touches
            ways = (min(prices, key=prices.__getitem__),)
        return best

    def _grouped(self, types_tried: int, shared: bool, max_touches: int) -> Grouped:
        """The groups when so many types are tried for each. If that takes more than `max_touches`, there are none."""
        key = tuple(self._kinds), self._counts, types_tried, shared
        found = self._known.get(key)
        if found is None or found.touches > max_touches:
            self._types_tried, self._shared, self._touches, self._left = types_tried, shared, 0, list(self._counts)
            found = Grouped(self._groups(max_touches), self._touches)
            if found.touches <= max_touches:
                self._known[key] = found
        return found

    def _groups(self, max_touches: int) -> list[PodGroup] | None:
        groups: list[PodGroup] = []
        self._price_resources()
        for seed in self._seed_order():
            while self._left[seed]:
                self._touches += len(self._kinds)
                if self._value_left() < REPRICE_BELOW * self._value_when_priced:
                    self._price_resources()
                group = self._best_group(seed)
                if group is None or self._touches > max_touches:
                    return None
                times = min(self._left[index] // count for index, count in group.counts)
                for index, count in group.counts:
                    self._left[index] -= count * times
                groups += [group] * times
        return groups

    # ── values ──────────────────────────────────────

    def _demand_left(self) -> list[int]:
        columns = range(len(self._options.resources))
        return [
            sum(kind.amounts[c] * left for kind, left in zip(self._kinds, self._left, strict=True)) for c in columns
        ]

    def _price_resources(self) -> None:
        """Price the resources for the pods that are left."""
        cheapest: dict[tuple[int, int], float] = {}
        for kind, left in zip(self._kinds, self._left, strict=True):
            for option in self._options.choices(kind) if left else ():
                key = option.template, option.type_number
                cheapest[key] = min(option.price, cheapest.get(key, option.price))
        self._touches += len(cheapest) + len(self._kinds)
        nodes = [PricedNode(price, self._options.room(*key)) for key, price in sorted(cheapest.items())]
        self._prices = resource_prices(nodes, self._demand_left())
        self._value_when_priced = self._value_left()

    def _value_left(self) -> float:
        return self._prices.value(self._demand_left())

    def _seed_order(self) -> list[int]:
        """The kinds in the order in which groups begin with them: those with the fewest types, then those that need the
        most nodes, then the most valuable pods."""
        return sorted(
            range(len(self._kinds)),
            key=lambda i: (
                len(self._options.choices(self._kinds[i])),
                -self._nodes_needed(i),
                -self._prices.value(self._kinds[i].amounts),
                self._kinds[i].amounts,
                i,
            ),
        )

    def _nodes_needed(self, kind: int) -> int:
        """How many nodes the pods of a kind that are left need at least, since few may be on each; 0 if any number may
        be, or pods are not shared."""
        limit = self._kinds[kind].max_per_node
        return -(-self._left[kind] // limit[2]) if limit is not None and self._shared else 0

    # ── one group ──────────────────────────────────────

    def _best_group(self, seed: int) -> PodGroup | None:
        """The group that costs least for the value of its pods with the seed's demands. Its other pods are taken off
        the price at their value."""
        kind = self._kinds[seed]
        best: tuple[float, float, PodGroup] | None = None
        for option in self._promising_types(seed)[: self._types_tried]:
            group = self._filled(option, seed)
            own, others = self._values(group, kind)
            cost = (group.price - others) / own if own else group.price
            if best is None or (cost, group.price) < best[:2]:
                best = cost, group.price, group
        return best[2] if best else None

    def _promising_types(self, seed: int) -> list[InstanceOption]:
        """The types that a group with this seed may be on, best first, by two estimates in turn of what pods on one
        would be worth for its price.

        The one fills it with pods of average requests, so it knows which resource runs out first, and how little a
        small node has left. The other takes all of its room for used, as by pods that suit one another.
        """
        kind, demand = self._kinds[seed], self._demand_left()
        left, nodes = sum(self._left), max(1, self._nodes_needed(seed))
        share, average = [-(-amount // nodes) for amount in demand], [amount / left for amount in demand]
        own, of_average = self._prices.value(kind.amounts), self._prices.value(average)
        by_average, by_room = [], []
        for option in self._options.choices(kind):
            if not all(map(le, kind.amounts, option.room)):
                continue
            free = zip(map(sub, option.room, kind.amounts), average, strict=True)
            further = min(left - 1, *(amount // each for amount, each in free if each))
            key = option.price, option.template, option.type_number, option
            by_average.append((_per_value(option.price, own + further * of_average), *key))
            by_room.append((_per_value(option.price, self._prices.value(map(min, option.room, share))), *key))
        self._touches += len(by_room)
        orders = (sorted(rated, key=lambda each: each[:4]) for rated in (by_average, by_room))
        in_turn = (each for pair in zip(*orders, strict=True) for each in pair)
        return list({(template, number): option for _, _, template, number, option in in_turn}.values())

    def _values(self, group: PodGroup, kind: PodKind) -> tuple[float, float]:
        """The value of the group's pods with the demands of a kind, and that of the others."""
        own = others = 0.0
        for index, count in group.counts:
            value = self._prices.value(self._kinds[index].amounts) * count
            if self._kinds[index].demands == kind.demands:
                own += value
            else:
                others += value
        return own, others

    def _filled(self, option: InstanceOption, seed: int) -> PodGroup:
        """One node of this type: the seed, then pods that suit what is left, until nothing fits."""
        whole, first = option.room, self._kinds[seed]
        room = [a - b for a, b in zip(whole, first.amounts, strict=True)]
        taken = {seed: 1}
        narrowed, ports = option.narrowed, first.ports
        candidates = self._kinds_to_add(seed)
        nodes = max(1, self._nodes_needed(seed))
        while True:
            pick = self._pick(candidates, room, whole, taken, nodes)
            if pick is None:
                return self._on_cheapest_size(option, narrowed, taken, first)
            index, count = pick
            kind = self._kinds[index]
            further = self._narrowed_for(option, narrowed, kind)
            if further is None or port_conflicts(kind.ports, ports):
                candidates = [candidate for candidate in candidates if candidate != index]
                continue
            narrowed, ports = further, ports + kind.ports
            if kind.ports:
                count = 1
                candidates = [candidate for candidate in candidates if candidate != index]
            taken[index] = taken.get(index, 0) + count
            room = [a - count * b for a, b in zip(room, kind.amounts, strict=True)]

    def _on_cheapest_size(
        self, option: InstanceOption, narrowed: NarrowedTemplate, taken: dict[int, int], kind: PodKind
    ) -> PodGroup:
        """The taken pods on the cheapest type that has room for them."""
        used = [0] * len(self._options.resources)
        for index, count in taken.items():
            used = [a + count * b for a, b in zip(used, self._kinds[index].amounts, strict=True)]
        cheapest = option
        prices = self._options.prices(option.template, narrowed)
        for size in self._options.choices(kind):
            if size.price >= option.price:
                break
            possible = size.template == option.template and narrowed.viable >> size.type_number & 1
            if possible and all(map(le, used, size.room)) and prices.get(size.type_number) == size.price:
                cheapest = size
                break
        return PodGroup(option.template, cheapest.type_number, cheapest.price, tuple(sorted(taken.items())))

    def _compatible_with(self, seed: int) -> list[int]:
        """The kinds of pods that may be on one node with this one: also those of NodePools of more weight."""
        demands = self._kinds[seed].demands
        compatible = self._compatible.get(demands)
        if compatible is None:
            requirements, _, weight = demands
            compatible = self._compatible[demands] = [
                number
                for number, kind in enumerate(self._kinds)
                if kind.weight >= weight
                and (kind.requirements == requirements or not requirements.conflicts(kind.requirements))
            ]
        return compatible

    def _kinds_to_add(self, seed: int) -> list[int]:
        """The kinds to fill a node up with: all compatible ones or, of many, evenly spread ones by value."""
        left = [i for i in self._compatible_with(seed) if self._left[i] and not (i == seed and self._kinds[i].ports)]
        if len(left) <= MAX_KINDS_CONSIDERED:
            return left
        left.sort(key=lambda i: (-self._prices.value(self._kinds[i].amounts), self._kinds[i].amounts, i))
        return [left[i * len(left) // MAX_KINDS_CONSIDERED] for i in range(MAX_KINDS_CONSIDERED)]

    def _pick(
        self, candidates: list[int], room: Sequence[int], whole: Sequence[int], taken: dict[int, int], nodes: int
    ) -> tuple[int, int] | None:
        """The kind that suits what is left best, and how many pods of it to add before looking again.

        The best has the highest value, each resource weighted by the part of it that is free. Kinds that fit no more
        are removed from the candidates. Each of so many `nodes` takes its share of every kind.
        """
        weights = [u * r / w if w else 0.0 for u, r, w in zip(self._prices.units, room, whole, strict=True)]
        best: tuple[float, int, int] | None = None
        self._touches += len(candidates)
        still = []
        for index in candidates:
            kind = self._kinds[index]
            fit = -(-self._left[index] // nodes) - taken.get(index, 0)
            if kind.max_per_node is not None:
                fit = min(fit, kind.max_per_node[2] - self._pods_with_limit(kind.max_per_node, taken))
            for amount, free in zip(kind.amounts, room, strict=True):
                if amount and amount * fit > free:
                    fit = free // amount
            if fit < 1:
                continue
            still.append(index)
            score = sum(map(mul, kind.amounts, weights))
            if best is None or score > best[0]:
                best = score, index, fit
        candidates[:] = still
        return None if best is None else (best[1], max(1, best[2] // 8))

    def _pods_with_limit(self, limit: tuple[str, str, int], taken: Mapping[int, int]) -> int:
        """How many of the taken pods it limits. They can be of several kinds: some must stay in their domain."""
        return sum(count for index, count in taken.items() if self._kinds[index].max_per_node == limit)

    def _narrowed_for(
        self, option: InstanceOption, narrowed: NarrowedTemplate, kind: PodKind
    ) -> NarrowedTemplate | None:
        """The template narrowed for one more kind of pods on the node; None if they may not be there, or would make it
        dearer."""
        further = self._options.narrowed(option.template, kind, narrowed)
        if further is None or self._options.prices(option.template, further).get(option.type_number) != option.price:
            return None
        return further if further.viable >> option.type_number & 1 else None


def _per_value(price: float, value: float) -> float:
    return price / value if value else price


def _total_price(groups: Sequence[PodGroup]) -> float:
    """USD per hour."""
    return sum(group.price for group in groups)
