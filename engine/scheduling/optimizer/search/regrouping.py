"""Pods split into groups, each meant for one node of one type, so that the sum of prices is low.

Greedy by worth: what a unit of each resource costs in the cheapest mixture of types (`bound.worth`) gives
every pod a value. A group begins with the pod that has the fewest places to go; of the types that could hold
it, the one is taken whose price is lowest for what its pods are worth, and the same group is used again for
as long as there are pods for it. Pods are matched to what is left of a node (a node short of memory gets the
pods that want CPU), which is what a first-fit order cannot do.

The result is a proposal: the planner plans every group again.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import le, mul

from msgspec import Struct

from kerf.engine.scheduling.launchable.templates import NarrowedTemplate
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.instance_options import InstanceOption, InstanceOptions, NodeDemands, PodKind
from kerf.engine.scheduling.optimizer.linear_relaxation import PricedNode, ResourcePrices, resource_prices

TYPES_TRIED = (2, 8, 32)
"""How many types are tried for one group: as many as the effort allows."""
WIDTH_GROWTH = 4
"""So many times as much does the next of them take, at most."""
EFFORT_SHARE = 3
"""One part in so many of the effort that is left may go into one regrouping."""
PICKS_PER_GROUP = 3
"""How often, about, the kinds of pods are looked at for one group."""
MAX_KINDS_CONSIDERED = 48
"""How many kinds of pods are considered for a place in a group, at most."""
REPRICE_BELOW = 0.5


class PodGroup(Struct, frozen=True):
    """`counts`: how many pods of which kind (by its index), for one node of type `kind` of template
    `template`, which costs `price`."""

    template: int
    kind: int
    price: float
    counts: tuple[tuple[int, int], ...]


class Regrouping:
    """One run over kinds of pods with their counts. Kinds that have nowhere to go must not be given."""

    def __init__(self, menu: InstanceOptions, kinds: Sequence[PodKind], counts: Sequence[int]) -> None:
        self._menu = menu
        self._kinds = kinds
        self._counts = tuple(counts)
        self._left = list(counts)
        self._width = 0
        self._touches = 0
        self._worth = ResourcePrices((), 0.0)
        self._priced = 0.0
        self._company: dict[NodeDemands, list[int]] = {}
        self._sizes: dict[NodeDemands, list[tuple[InstanceOption, tuple[int, ...]]]] = {}

    def groups(self, effort: Effort) -> list[PodGroup] | None:
        """The groups, None if some pod has no place of its own or the effort does not suffice: those that cost least
        of what few types give and, as far as the effort goes, more of them."""
        best: list[PodGroup] | None = None
        about = (
            PICKS_PER_GROUP
            * sum(min(len(self._beside(each)), MAX_KINDS_CONSIDERED) for each in range(len(self._kinds)))
            * TYPES_TRIED[0]
        )
        for width in TYPES_TRIED:
            if about > effort.left // EFFORT_SHARE:
                break
            self._width, self._touches, self._left = width, 0, list(self._counts)
            found = self._groups(effort.left // EFFORT_SHARE)
            effort.charge(self._touches)
            if found is None:
                break
            if best is None or _total_price(found) < _total_price(best):
                best = found
            if width >= self._most_ways:
                break
            about = WIDTH_GROWTH * self._touches
        return best

    def _groups(self, most: int) -> list[PodGroup] | None:
        found: list[PodGroup] = []
        self._price()
        for seed in self._order():
            while self._left[seed]:
                self._touches += len(self._kinds)
                if self._worth_left() < REPRICE_BELOW * self._priced:
                    self._price()
                best = self._best(seed)
                if best is None or self._touches > most:
                    return None
                times = min(self._left[index] // count for index, count in best.counts)
                for index, count in best.counts:
                    self._left[index] -= count * times
                found += [best] * times
        return found

    @property
    def _most_ways(self) -> int:
        return max((len(self._menu.choices(each)) for each in self._kinds), default=0)

    # ── worth ──────────────────────────────────────

    def _demand(self) -> list[int]:
        columns = range(len(self._menu.resources))
        return [
            sum(kind.amounts[c] * left for kind, left in zip(self._kinds, self._left, strict=True)) for c in columns
        ]

    def _price(self) -> None:
        cheapest: dict[tuple[int, int], float] = {}
        for kind, left in zip(self._kinds, self._left, strict=True):
            for way in self._menu.choices(kind) if left else ():
                key = way.template, way.kind
                cheapest[key] = min(way.price, cheapest.get(key, way.price))
        self._touches += len(cheapest) + len(self._kinds)
        rows = [PricedNode(price, self._menu.room(*key)) for key, price in sorted(cheapest.items())]
        self._worth = resource_prices(rows, self._demand())
        self._priced = self._worth_left()

    def _worth_left(self) -> float:
        return self._worth.of(self._demand())

    def _order(self) -> list[int]:
        """The kinds with the fewest ways first, then the most valuable pods."""
        return sorted(
            range(len(self._kinds)),
            key=lambda i: (
                len(self._menu.choices(self._kinds[i])),
                -self._worth.of(self._kinds[i].amounts),
                self._kinds[i].amounts,
                i,
            ),
        )

    # ── one group ──────────────────────────────────────

    def _best(self, seed: int) -> PodGroup | None:
        """The group that costs least for what the pods of the seed's demands are worth in it, other pods
        counting as what they would cost elsewhere."""
        wanted = self._kinds[seed]
        demand = self._demand()
        rated = []
        for way in self._menu.choices(wanted):
            room = self._menu.room(way.template, way.kind)
            if all(a <= b for a, b in zip(wanted.amounts, room, strict=True)):
                value = self._worth.of(min(a, b) for a, b in zip(room, demand, strict=True))
                rated.append((way.price / value if value else way.price, way.price, way.template, way.kind, way))
        rated.sort(key=lambda each: each[:4])
        self._touches += len(rated)
        best: tuple[float, float, PodGroup] | None = None
        for *_, way in rated[: self._width]:
            group = self._filled(way, seed)
            own, others = self._values(group, wanted)
            cost = (group.price - others) / own if own else group.price
            if best is None or (cost, group.price) < best[:2]:
                best = cost, group.price, group
        return best[2] if best else None

    def _values(self, group: PodGroup, wanted: PodKind) -> tuple[float, float]:
        own = others = 0.0
        for index, count in group.counts:
            value = self._worth.of(self._kinds[index].amounts) * count
            if self._kinds[index].demands == wanted.demands:
                own += value
            else:
                others += value
        return own, others

    def _filled(self, way: InstanceOption, seed: int) -> PodGroup:
        """One node of this type: the seed, then pods that suit what is left, until nothing fits."""
        whole = self._menu.room(way.template, way.kind)
        first = self._kinds[seed]
        room = [a - b for a, b in zip(whole, first.amounts, strict=True)]
        taken = {seed: 1}
        state, ports = way.state, first.ports
        looked = self._sample(seed)
        while True:
            pick = self._pick(looked, room, whole, taken)
            if pick is None:
                return self._shrunk(way, state, taken, first)
            index, count = pick
            kind = self._kinds[index]
            following = self._joined(way, state, kind)
            if following is None or port_conflicts(kind.ports, ports):
                looked = [each for each in looked if each != index]
                continue
            state, ports = following, ports + kind.ports
            if kind.ports:
                count = 1
                looked = [each for each in looked if each != index]
            taken[index] = taken.get(index, 0) + count
            room = [a - count * b for a, b in zip(room, kind.amounts, strict=True)]

    def _shrunk(self, way: InstanceOption, state: NarrowedTemplate, taken: dict[int, int], wanted: PodKind) -> PodGroup:
        """Those pods on the cheapest type that has room for them."""
        used = [0] * len(self._menu.resources)
        for index, count in taken.items():
            used = [a + count * b for a, b in zip(used, self._kinds[index].amounts, strict=True)]
        chosen = way
        prices = self._menu.prices(way.template, state)
        for each, room in self._sizes_of(wanted):
            if each.price >= way.price:
                break
            there = each.template == way.template and state.viable >> each.kind & 1
            if there and all(map(le, used, room)) and prices.get(each.kind) == each.price:
                chosen = each
                break
        return PodGroup(way.template, chosen.kind, chosen.price, tuple(sorted(taken.items())))

    def _sizes_of(self, wanted: PodKind) -> list[tuple[InstanceOption, tuple[int, ...]]]:
        """The ways for pods of such demands, cheapest first, and the room there."""
        found = self._sizes.get(wanted.demands)
        if found is None:
            found = self._sizes[wanted.demands] = [
                (each, self._menu.room(each.template, each.kind)) for each in self._menu.choices(wanted)
            ]
        return found

    def _beside(self, seed: int) -> list[int]:
        """The kinds of pods that may be on one node with this one."""
        demands = self._kinds[seed].demands
        found = self._company.get(demands)
        if found is None:
            asked, _, weight = demands
            found = self._company[demands] = [
                number
                for number, each in enumerate(self._kinds)
                if each.weight == weight and (each.requirements == asked or not asked.conflicts(each.requirements))
            ]
        return found

    def _sample(self, seed: int) -> list[int]:
        """The kinds to fill up with: all, or evenly many of a long list."""
        left = [i for i in self._beside(seed) if self._left[i] and not (i == seed and self._kinds[i].ports)]
        if len(left) <= MAX_KINDS_CONSIDERED:
            return left
        left.sort(key=lambda i: (-self._worth.of(self._kinds[i].amounts), self._kinds[i].amounts, i))
        return [left[i * len(left) // MAX_KINDS_CONSIDERED] for i in range(MAX_KINDS_CONSIDERED)]

    def _pick(
        self, looked: list[int], room: Sequence[int], whole: Sequence[int], taken: dict[int, int]
    ) -> tuple[int, int] | None:
        """The kind that fits best into what is left (value × share of the resource that is free), and how
        many pods of it to add before looking again. Those that fit no more are looked at no more."""
        weights = [u * r / w if w else 0.0 for u, r, w in zip(self._worth.units, room, whole, strict=True)]
        best: tuple[float, int, int] | None = None
        self._touches += len(looked)
        still = []
        for index in looked:
            kind = self._kinds[index]
            fit = self._left[index] if kind.apart is None else min(self._left[index], kind.apart[2])
            fit -= taken.get(index, 0)
            for amount, free in zip(kind.amounts, room, strict=True):
                if amount and amount * fit > free:
                    fit = free // amount
            if fit < 1:
                continue
            still.append(index)
            score = sum(map(mul, kind.amounts, weights))
            if best is None or score > best[0]:
                best = score, index, fit
        looked[:] = still
        return None if best is None else (best[1], max(1, best[2] // 8))

    def _joined(self, way: InstanceOption, state: NarrowedTemplate, kind: PodKind) -> NarrowedTemplate | None:
        """The state with one more kind of pod on the node; None if that cannot be or makes it dearer."""
        if not self._menu.tolerated(way.template, kind):
            return None
        if self._menu.templates[way.template].pool.weight != kind.weight:
            return None
        following = self._menu.state(way.template, kind.requirements, state)
        if following is None or self._menu.prices(way.template, following).get(way.kind) != way.price:
            return None
        return following if following.viable >> way.kind & 1 else None


def _total_price(groups: Sequence[PodGroup]) -> float:
    """USD per hour."""
    return sum(each.price for each in groups)
