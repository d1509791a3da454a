"""The pods on the nodes of one rating, and what they are to those that look for a place: topology spread, affinity and
anti-affinity, as kube-scheduler filters and scores by them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

from kerf.engine.scheduling.kube_scheduler.interpod_rules import (
    InterpodRules,
    PodCountRule,
    ShapeKey,
    SpreadRule,
    TopologyNode,
)
from kerf.engine.scheduling.problem.problem import Problem

SPREAD_WEIGHT, INTERPOD_AFFINITY_WEIGHT = 2, 2
"""Weights of the default score plugins."""

DomainRule = tuple[Sequence[str | None], Mapping[str | None, int], float, float, bool]
"""The domain of each place by number, the pods that are counted in each, how few and how many there may be in that of
a place for one pod more, and whether a place must have one."""


class _DomainCounts:
    """One count now. `where` has the domain of each place, `taking` whether the place takes part (None: all do)."""

    __slots__ = ("_known", "_least", "by_domain", "domains", "taking", "total", "where")

    def __init__(
        self,
        where: list[str | None],
        taking: list[bool] | None,
        by_domain: dict[str | None, int],
        domains: frozenset[str],
    ) -> None:
        self.where = where
        self.taking = taking
        self.by_domain = by_domain
        self.domains = domains
        self.total = sum(by_domain.values())
        self._least = 0
        self._known = -1  # the total that `_least` is of

    def add(self, place: int, pods: int = 1) -> None:
        """So many more pods that are selected."""
        domain = self.where[place]
        if domain is not None and (self.taking is None or self.taking[place]):
            self.by_domain[domain] = self.by_domain.get(domain, 0) + pods
            self.total += pods

    def copy(self) -> _DomainCounts:
        return _DomainCounts(self.where, self.taking, dict(self.by_domain), self.domains)

    @property
    def least(self) -> int:
        """The fewest pods in any domain."""
        if self.total < len(self.domains):
            return 0
        if self._known != self.total:
            self._known = self.total
            self._least = min((self.by_domain.get(each, 0) for each in self.domains), default=0)
        return self._least

    def at(self, place: int) -> int:
        domain = self.where[place]
        return 0 if domain is None else self.by_domain.get(domain, 0)


class InterpodCounts:
    """On some places, by their numbers, with the pods that are bound already; `joined` makes one with further places,
    which shares what does not change."""

    def __init__(self, problem: Problem, manners: InterpodRules, places: Iterable[TopologyNode]) -> None:
        self._manners = manners
        self._looked: dict[tuple[int, int], bool] = {}
        self._places: tuple[TopologyNode, ...] = ()
        self._where: dict[str, list[str | None]] = {counted.key: [] for counted in manners.counts}
        self._counts = [_DomainCounts(self._where[counted.key], None, {}, frozenset()) for counted in manners.counts]
        given = tuple(places)
        self._join(given)
        by_name = {place.name: place.index for place in given}
        for pod in problem.bound:
            if pod.node in by_name:
                self.bound((pod.namespace, pod.shape), by_name[pod.node])

    def joined(self, places: Iterable[TopologyNode]) -> InterpodCounts:
        made = InterpodCounts.__new__(InterpodCounts)
        made._manners, made._looked, made._places = self._manners, self._looked, self._places
        made._where, made._counts = self._where, self._counts
        made._join(tuple(places))
        return made

    def again(self) -> InterpodCounts:
        """With the same pods on the same places."""
        made = InterpodCounts.__new__(InterpodCounts)
        made._manners, made._looked, made._places, made._where = self._manners, self._looked, self._places, self._where
        made._counts = [each.copy() for each in self._counts]
        return made

    def rules(self, pair: ShapeKey) -> list[DomainRule]:
        """What the filters ask of a place for a pod now."""
        wanted, counts = self._manners.demands[pair], self._counts
        rules = [self._evenly(spread) for spread in wanted.spreads]
        if wanted.apart:
            apart = [counts[number] for number in wanted.apart]
            rules += [(each.where, each.by_domain, 0, 0, False) for each in apart]
        if wanted.together:
            together = [counts[number] for number in wanted.together]
            least = 0 if wanted.first and not any(each.total for each in together) else 1
            rules += [(each.where, each.by_domain, least, math.inf, True) for each in together]
        return rules

    def allowed(self, pair: ShapeKey, places: Iterable[int]) -> list[int]:
        """Those of these places that the filters let through."""
        found = list(places)
        for where, there, least, most, needed in self.rules(pair):
            found = [
                each
                for each in found
                if (least <= there.get(domain, 0) <= most if (domain := where[each]) is not None else not needed)
            ]
        return found

    def allows(self, pair: ShapeKey, place: int) -> bool:
        """Whether the filters let this place through."""
        return passes(self.rules(pair), place)

    def crowd(self, pair: ShapeKey, place: int, spreads: Sequence[int]) -> tuple[bool, int]:
        """Whether a pod there would enter none of these counts, and how many are counted by those in its domains."""
        entered = self._manners.entered(pair)
        counts = [number for number in spreads if number in entered]
        return not counts, sum([self._counts[number].at(place) for number in counts])

    def standing(self, pair: ShapeKey, place: int) -> Hashable:
        """Equal for pods and places that the filters do not tell apart, whatever is bound."""
        wanted = self._manners.demands[pair]
        numbers = [*(each.count for each in wanted.spreads), *wanted.together, *wanted.apart]
        there = tuple([self._counts[number].where[place] for number in numbers])
        return wanted.spreads, wanted.together, wanted.apart, wanted.first, there

    def level(self, number: int, place: int) -> tuple[int, bool]:
        """Of a count, the fewest pods in any domain, and whether there is one in that of a place. The filters let a
        pod through that they have refused only where one of them rises, of a spread or of a term of affinity."""
        count = self._counts[number]
        return count.least, count.at(place) > 0

    def bound(self, pair: ShapeKey, place: int) -> None:
        for number in self._manners.entered(pair):
            self._counts[number].add(place)

    def left(self, pair: ShapeKey, place: int) -> None:
        """A pod that was bound there is not any more; before anyone is asked."""
        for number in self._manners.entered(pair):
            self._counts[number].add(place, -1)

    def tastes(self, pair: ShapeKey) -> int:
        """How many counts of the pods around it make one feasible place better for the pod than another."""
        wanted = self._manners.demands[pair]
        return len(wanted.evenly) + len(wanted.liked)

    def taste(self, pair: ShapeKey, places: Sequence[int]) -> list[float]:
        """0 to 400 for each of the feasible places."""
        wanted, counts = self._manners.demands[pair], self._counts
        tastes = [0.0] * len(places)
        if wanted.evenly:
            crowded = self._crowding(wanted.evenly, places)
            known = [each for each in crowded if each is not None]
            most, least = max(known, default=0), min(known, default=0)
            tastes = [
                0.0 if each is None else SPREAD_WEIGHT * (100.0 if not most else 100 * (most + least - each) // most)
                for each in crowded
            ]
        if wanted.liked:
            liked = [0] * len(places)
            for number, weight in wanted.liked:
                where, there = counts[number].where, counts[number].by_domain
                if there:
                    liked = [a + weight * there.get(where[b], 0) for a, b in zip(liked, places, strict=True)]
            low, high = min(liked, default=0), max(liked, default=0)
            if high > low:
                tastes = [
                    a + INTERPOD_AFFINITY_WEIGHT * int(100 * ((b - low) / (high - low)))
                    for a, b in zip(tastes, liked, strict=True)
                ]
        return tastes

    # ── one rule ──────────────────────────────────────

    def _evenly(self, spread: SpreadRule) -> DomainRule:
        count = self._counts[spread.count]
        least = 0 if len(count.domains) < spread.min_domains else count.least
        return count.where, count.by_domain, 0, least + spread.max_skew - spread.own, True

    def _crowding(self, spreads: Sequence[SpreadRule], places: Sequence[int]) -> list[float | None]:
        """How far each place is from even, by all soft spreads; None if it lacks a label of theirs."""
        crowded = [0.0] * len(places)
        without: set[int] = set()
        for each in spreads:
            where, there = self._counts[each.count].where, self._counts[each.count].by_domain
            domains = [where[place] for place in places]
            weight, more = math.log(len({*domains} - {None}) + 2), each.max_skew - 1
            crowded = [a + (there.get(b, 0) * weight + more) for a, b in zip(crowded, domains, strict=True)]
            without.update(position for position, domain in enumerate(domains) if domain is None)
        return [None if n in without else float(round(each)) for n, each in enumerate(crowded)]

    # ── places ──────────────────────────────────────

    def _join(self, places: tuple[TopologyNode, ...]) -> None:
        self._places += places
        self._where = {key: [*old, *(each.domain(key) for each in places)] for key, old in self._where.items()}
        self._counts = [
            self._grown(counted, old, places) for counted, old in zip(self._manners.counts, self._counts, strict=True)
        ]

    def _grown(self, counted: PodCountRule, old: _DomainCounts, places: tuple[TopologyNode, ...]) -> _DomainCounts:
        where = self._where[counted.key]
        new = where[len(where) - len(places) :]
        taking = None
        if not counted.everywhere:
            looked = [self._looks_at(counted, each) for each in places]
            new = [domain for domain, takes in zip(new, looked, strict=True) if takes]
            taking = [*(old.taking or ()), *looked]
        domains = old.domains.union(each for each in new if each is not None)
        return _DomainCounts(where, taking, dict(old.by_domain), domains)

    def _looks_at(self, counted: PodCountRule, place: TopologyNode) -> bool:
        if place.kind < 0:
            return counted.looks_at(place)
        key = counted.number, place.kind
        if key not in self._looked:
            self._looked[key] = counted.looks_at(place)
        return self._looked[key]


def passes(rules: Iterable[DomainRule], place: int) -> bool:
    """Whether a place keeps all of these."""
    for where, there, least, most, needed in rules:
        domain = where[place]
        if domain is None:
            if needed:
                return False
        elif not least <= there.get(domain, 0) <= most:
            return False
    return True
