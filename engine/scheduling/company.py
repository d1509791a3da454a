"""What pods demand of the pods around them, as kube-scheduler filters by it: topology spread, affinity and
anti-affinity. Written for rating plans, apart from the planner's own topology, so that the two can disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.model.pods import AffinityTerm, PodShape
from kerf.engine.scheduling.problem import Problem
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.selectors import PodSelector, of_spread, of_term
from kerf.engine.scheduling.shapes import HARD_SPREAD, requirements_of

Pair = tuple[str, str]
"""The namespace and the shape (digest) of a pod."""


class Place(Struct, frozen=True):
    """What of a node matters here; `index` is its number."""

    index: int
    labels: dict[str, str]
    known: Requirements
    name: str

    def domain(self, key: str) -> str | None:
        return self.labels.get(key, self.name if key == HOSTNAME else None)


class _Count:
    """The pods that `selects` takes, by the domain of a key; `places` are the nodes that take part."""

    def __init__(self, key: str, selects: Callable[[Pair], bool], places: Iterable[Place]) -> None:
        self.key = key
        self.selects = selects
        self.places = frozenset(each.index for each in places)
        self.by_domain: Counter[str] = Counter()
        self.domains = frozenset(d for each in places if (d := each.domain(key)) is not None)

    def add(self, pair: Pair, place: Place) -> None:
        domain = place.domain(self.key)
        if domain is not None and place.index in self.places and self.selects(pair):
            self.by_domain[domain] += 1

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
        few = len(self.count.domains) < self.min_domains
        least = 0 if few else min((self.count.by_domain[each] for each in self.count.domains), default=0)
        return self.count.at(place) + self.own - least <= self.max_skew


class _Demands(Struct, frozen=True):
    """Of one pair: the constraints that bind it. `first`: it may be the first of those it wants to be with."""

    spreads: tuple[_Spread, ...]
    together: tuple[_Count, ...]
    apart: tuple[_Count, ...]
    first: bool


class Company:
    """The pods on the nodes of one rating; `places` are all nodes that it knows."""

    def __init__(self, problem: Problem, places: Iterable[Place]) -> None:
        self._problem = problem
        self._places = tuple(places)
        self._counts: list[_Count] = []
        self._demands: dict[Pair, _Demands] = {}
        pending = {(each.namespace, each.shape) for each in problem.pods}
        pairs = sorted(pending | {(each.namespace, each.shape) for each in problem.bound})
        self._keepers = [keeper for pair in pairs for keeper in self._keeping_away(pair)]
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
        for each in self._counts:
            each.add(pair, place)

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
        selectors = [self._selector(each, namespace, shape) for each in required]
        everyone = self._selecting(selectors)
        apart = [
            self._count(each.topology_key, self._selecting([self._selector(each, namespace, shape)]), self._places)
            for each in shape.anti_affinity
            if not each.weight
        ]
        return _Demands(
            tuple(self._spreads(pair, shape)),
            tuple(self._count(each.topology_key, everyone, self._places) for each in required),
            (*apart, *(count for selects, count in self._keepers if selects(pair))),
            bool(required) and everyone(pair),
        )

    def _spreads(self, pair: Pair, shape: PodShape) -> Iterable[_Spread]:
        for each in shape.spread:
            if each.when_unsatisfiable == HARD_SPREAD:
                selects = self._selecting([of_spread(each, pair[0], shape.labels)])
                places = self._places
                if each.node_affinity_policy == "Honor":
                    places = tuple(place for place in places if node_affinity_holds(shape, place.known))
                count = self._count(each.topology_key, selects, places)
                yield _Spread(count, each.max_skew, each.min_domains or 0, int(selects(pair)))

    def _keeping_away(self, pair: Pair) -> Iterable[tuple[Callable[[Pair], bool], _Count]]:
        """For each required anti-affinity term of a pod: whom it keeps away, and the count of such pods."""
        namespace, digest = pair
        shape = self._problem.shapes[digest]
        for each in shape.anti_affinity:
            if not each.weight:
                selects = self._selecting([self._selector(each, namespace, shape)])
                yield selects, self._count(each.topology_key, pair.__eq__, self._places)

    def _selector(self, term: AffinityTerm, namespace: str, shape: PodShape) -> PodSelector:
        return of_term(term, namespace, shape.labels, self._problem.namespaces)

    def _selecting(self, selectors: list[PodSelector]) -> Callable[[Pair], bool]:
        known: dict[Pair, bool] = {}

        def selects(pair: Pair) -> bool:
            if pair not in known:
                labels = self._problem.shapes[pair[1]].labels
                known[pair] = all(each.selects(pair[0], labels) for each in selectors)
            return known[pair]

        return selects

    def _count(self, key: str, selects: Callable[[Pair], bool], places: Iterable[Place]) -> _Count:
        made = _Count(normalise(key), selects, tuple(places))
        self._counts.append(made)
        return made


def node_affinity_holds(shape: PodShape, labels: Requirements) -> bool:
    """kube-scheduler's reading: the nodeSelector and any one of the required terms."""
    terms = [replace(shape, required_terms=(term,)) for term in shape.required_terms] or [shape]
    return any(labels.compatible(requirements_of(each, preferences=False)) for each in terms)
