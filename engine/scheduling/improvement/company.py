"""What pods demand of the pods around them, as kube-scheduler filters and scores by it: topology spread, affinity and
anti-affinity. Written for rating plans, apart from the planner's own topology, so that the two can disagree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct

from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.model.pods import AffinityTerm, PodShape, SpreadConstraint, Taint, Toleration
from kerf.engine.scheduling.problem import Problem
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.selectors import PodSelector, of_spread, of_term
from kerf.engine.scheduling.shapes import HARD_SPREAD, alternatives_of
from kerf.engine.scheduling.taints import PREFER_NO_SCHEDULE, untolerated

Pair = tuple[str, str]
"""The namespace and the shape (digest) of a pod."""
Selectors = tuple[PodSelector, ...]
"""Of which a pod must match all."""
Asked = tuple[tuple[Requirements, ...], tuple[Toleration, ...] | None]
"""The nodes that a spread looks at: those that meet one of these (any, if there are none) and whose taints are
tolerated (whatever they are, if None)."""
EVERYWHERE: Asked = (), None
SPREAD, AFFINITY = 2, 2
"""Weights of the default score plugins."""


class Place(Struct, frozen=True):
    """What of a node matters here; `index` is its number."""

    index: int
    labels: dict[str, str]
    known: Requirements
    name: str
    taints: tuple[Taint, ...] = ()

    def domain(self, key: str) -> str | None:
        return self.labels.get(key, self.name if key == HOSTNAME else None)


class _Count:
    """The pods that `selects` takes, by the domain of a key; `places` are the nodes that take part."""

    def __init__(self, key: str, selects: Callable[[Pair], bool], places: Iterable[Place]) -> None:
        self.key = key
        self.selects = selects
        self.places = frozenset(each.index for each in places)
        self.by_domain: Counter[str] = Counter()
        self._least: int | None = None
        self.domains = frozenset(d for each in places if (d := each.domain(key)) is not None)

    def add(self, place: Place) -> None:
        """One more pod that is selected."""
        domain = place.domain(self.key)
        if domain is not None and place.index in self.places:
            self.by_domain[domain] += 1
            self._least = None

    @property
    def least(self) -> int:
        """The fewest pods in any domain."""
        if self._least is None:
            self._least = min((self.by_domain[each] for each in self.domains), default=0)
        return self._least

    def at(self, place: Place) -> int:
        domain = place.domain(self.key)
        return 0 if domain is None else self.by_domain[domain]


class _Spread(Struct, frozen=True):
    count: _Count
    max_skew: int
    min_domains: int
    own: int

    def allows(self, place: Place) -> bool:
        if place.domain(self.count.key) is None:
            return False
        least = 0 if len(self.count.domains) < self.min_domains else self.count.least
        return self.count.at(place) + self.own - least <= self.max_skew


class _Demands(Struct, frozen=True):
    """Of one pair: the constraints that bind it. `first`: it may be the first of those it wants to be with. `evenly`
    and `liked` are what it would rather have: spreads, and who is welcome around it (or not) by how much."""

    spreads: tuple[_Spread, ...]
    together: tuple[_Count, ...]
    apart: tuple[_Count, ...]
    first: bool
    evenly: tuple[_Spread, ...]
    liked: tuple[tuple[_Count, int], ...]


class Company:
    """The pods on the nodes of one rating; `places` are all nodes that it knows."""

    def __init__(self, problem: Problem, places: Iterable[Place]) -> None:
        self._problem = problem
        self._places = tuple(places)
        self._counts: dict[object, _Count] = {}
        self._entered: dict[Pair, tuple[_Count, ...]] = {}
        self._demands: dict[Pair, _Demands] = {}
        pending = {(each.namespace, each.shape) for each in problem.pods}
        pairs = sorted(pending | {(each.namespace, each.shape) for each in problem.bound})
        self._keepers = [keeper for pair in pairs for keeper in self._keeping_away(pair)]
        self._fans = [fan for pair in pairs for fan in self._seeking(pair)]
        for pair in sorted(pending):
            self._demands[pair] = self._of(pair)
        by_name = {each.name: each for each in self._places}
        for pod in problem.bound:
            if pod.node in by_name:
                self.bound((pod.namespace, pod.shape), by_name[pod.node])

    def allows(self, pair: Pair, place: Place) -> bool:
        wanted = self._demands[pair]
        return (
            all(each.allows(place) for each in wanted.spreads)
            and all(not each.at(place) for each in wanted.apart)
            and self._together(wanted, place)
        )

    def bound(self, pair: Pair, place: Place) -> None:
        counts = self._entered.get(pair)
        if counts is None:
            counts = self._entered[pair] = tuple(each for each in self._counts.values() if each.selects(pair))
        for each in counts:
            each.add(place)

    def has_taste(self, pair: Pair) -> bool:
        """Whether the pods around it make one feasible place better for the pod than another."""
        return bool(self._demands[pair].evenly or self._demands[pair].liked)

    def taste(self, pair: Pair, places: Sequence[Place]) -> list[float]:
        """0 to 400 for each of the feasible places."""
        wanted = self._demands[pair]
        crowded = [_crowding(wanted.evenly, each, places) for each in places]
        known = [each for each in crowded if each is not None]
        most, least = max(known, default=0), min(known, default=0)
        even = [0.0 if each is None else 100.0 if not most else 100 * (most + least - each) / most for each in crowded]
        liked = [sum(weight * count.at(each) for count, weight in wanted.liked) for each in places]
        low, high = min(liked, default=0), max(liked, default=0)
        near = [100 * (each - low) / (high - low) if high > low else 0.0 for each in liked]
        return [SPREAD * a * bool(wanted.evenly) + AFFINITY * b for a, b in zip(even, near, strict=True)]

    def _together(self, wanted: _Demands, place: Place) -> bool:
        if any(place.domain(each.key) is None for each in wanted.together):
            return False
        if all(each.at(place) for each in wanted.together):
            return True
        return wanted.first and not any(each.by_domain.total() for each in wanted.together)

    # ── what is counted ──────────────────────────────────────

    def _of(self, pair: Pair) -> _Demands:
        namespace, digest = pair
        shape = self._problem.shapes[digest]
        required = [each for each in shape.affinity if not each.weight]
        selectors = tuple(self._selector(each, namespace, shape) for each in required)
        apart = [
            self._count(each.topology_key, (self._selector(each, namespace, shape),))
            for each in shape.anti_affinity
            if not each.weight
        ]
        return _Demands(
            tuple(self._spread(pair, shape, each) for each in shape.spread if each.when_unsatisfiable == HARD_SPREAD),
            tuple(self._count(each.topology_key, selectors) for each in required),
            (*apart, *(count for keeps_away, count in self._keepers if self._selects((keeps_away,), pair))),
            bool(required) and self._selects(selectors, pair),
            tuple(self._spread(pair, shape, each) for each in shape.spread if each.when_unsatisfiable != HARD_SPREAD),
            (
                *self._preferred(pair, shape),
                *((c, w) for fond_of, c, w in self._fans if self._selects((fond_of,), pair)),
            ),
        )

    def _preferred(self, pair: Pair, shape: PodShape) -> Iterable[tuple[_Count, int]]:
        for terms, sign in ((shape.affinity, 1), (shape.anti_affinity, -1)):
            for each in terms:
                if each.weight:
                    yield self._count(each.topology_key, (self._selector(each, pair[0], shape),)), sign * each.weight

    def _spread(self, pair: Pair, shape: PodShape, each: SpreadConstraint) -> _Spread:
        selectors = (of_spread(each, pair[0], shape.labels),)
        asked = (
            alternatives_of(shape) if each.node_affinity_policy == "Honor" else (),
            shape.tolerations if each.node_taints_policy == "Honor" else None,
        )
        count = self._count(each.topology_key, selectors, asked)
        return _Spread(count, each.max_skew, each.min_domains or 0, int(self._selects(selectors, pair)))

    def _keeping_away(self, pair: Pair) -> Iterable[tuple[PodSelector, _Count]]:
        """For each required anti-affinity term of a pod: whom it keeps away, and the count of such pods."""
        shape = self._problem.shapes[pair[1]]
        for each in shape.anti_affinity:
            if not each.weight:
                yield self._selector(each, pair[0], shape), self._owners(pair, each.topology_key)

    def _seeking(self, pair: Pair) -> Iterable[tuple[PodSelector, _Count, int]]:
        """The same for its other terms, with how welcome such pods are to it; a required one counts 1."""
        shape = self._problem.shapes[pair[1]]
        for terms, sign in ((shape.affinity, 1), (shape.anti_affinity, -1)):
            for each in terms:
                if each.weight or sign > 0:
                    owners = self._owners(pair, each.topology_key)
                    yield self._selector(each, pair[0], shape), owners, sign * (each.weight or 1)

    def _owners(self, pair: Pair, key: str) -> _Count:
        """The count of the pods of one pair."""
        key = normalise(key)
        found = self._counts.get((key, pair))
        if found is None:
            found = self._counts[key, pair] = _Count(key, pair.__eq__, self._places)
        return found

    def _selector(self, term: AffinityTerm, namespace: str, shape: PodShape) -> PodSelector:
        return of_term(term, namespace, shape.labels, self._problem.namespaces)

    def _selects(self, selectors: Selectors, pair: Pair) -> bool:
        labels = self._problem.shapes[pair[1]].labels
        return all(each.selects(pair[0], labels) for each in selectors)

    def _count(self, key: str, selectors: Selectors, asked: Asked = EVERYWHERE) -> _Count:
        """The count of the pods that all these select, on the nodes that are asked for."""
        identity = normalise(key), selectors, asked
        found = self._counts.get(identity)
        if found is None:
            places = tuple(each for each in self._places if _looked_at(asked, each))
            found = _Count(normalise(key), partial(self._selects, selectors), places)
            self._counts[identity] = found
        return found


def _looked_at(asked: Asked, place: Place) -> bool:
    alternatives, tolerations = asked
    if tolerations is not None:
        hard = (each for each in place.taints if each.effect != PREFER_NO_SCHEDULE)
        if untolerated(hard, tolerations):
            return False
    return not alternatives or meets_one(alternatives, place.known)


def _crowding(spreads: Sequence[_Spread], place: Place, places: Sequence[Place]) -> float | None:
    """How far a place is from even, by all soft spreads; None if it lacks a label of theirs."""
    total = 0.0
    for each in spreads:
        if place.domain(each.count.key) is None:
            return None
        domains = {other.domain(each.count.key) for other in places} - {None}
        total += each.count.at(place) * math.log(len(domains) + 2) + each.max_skew - 1
    return float(round(total))


def meets_one(alternatives: Iterable[Requirements], labels: Requirements) -> bool:
    """Whether a node's labels meet the nodeSelector and some required term of a pod (see `alternatives_of`)."""
    return any(not each or labels.compatible(each) for each in alternatives)
