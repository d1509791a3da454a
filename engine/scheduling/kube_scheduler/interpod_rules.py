"""What pods demand of the pods around them, compiled once for all ratings of one problem: which pods are counted, on
which nodes, and which of these counts bind or please a pod. Written for rating plans, apart from the planner's own
topology, so that the two can disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, SpreadConstraint, Taint, Toleration
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.matching.label_selectors import PodSelector, spread_selector, term_selector
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD, alternatives_of, hard_keys
from kerf.engine.scheduling.problem.problem import Problem

ShapeKey = tuple[str, str]
"""The namespace and the shape (digest) of a pod."""
PodSelectors = tuple[PodSelector, ...]
"""Of which a pod must match all."""
NodeFilter = tuple[tuple[Requirements, ...], tuple[Toleration, ...] | None, tuple[str, ...]]
"""The nodes that a spread looks at: those that meet one of these (any, if there are none), whose taints are tolerated
(whatever they are, if None), and that have these labels."""
EVERY_NODE: NodeFilter = (), None, ()


class TopologyNode(Struct, frozen=True):
    """What of a node matters here; `index` is its number."""

    index: int
    labels: dict[str, str]
    known: Requirements
    name: str
    taints: tuple[Taint, ...] = ()
    kind: int = -1  # places of one kind have equal labels and taints; -1: it is like no other

    def domain(self, key: str) -> str | None:
        return self.labels.get(key, self.name if key == HOSTNAME else None)


class PodCountRule(Struct, frozen=True):
    """The pods that `selects` takes, by the domain of a key, on the nodes that are `asked` for; `number` tells counts
    apart."""

    number: int
    key: str
    selects: Callable[[ShapeKey], bool]
    asked: NodeFilter

    @property
    def everywhere(self) -> bool:
        alternatives, tolerations, keys = self.asked
        return tolerations is None and not keys and all(not each for each in alternatives)

    def looks_at(self, place: TopologyNode) -> bool:
        alternatives, tolerations, keys = self.asked
        if any(place.domain(key) is None for key in keys):
            return False
        if tolerations is not None:
            hard = (each for each in place.taints if each.effect != PREFER_NO_SCHEDULE)
            if untolerated(hard, tolerations):
                return False
        return not alternatives or meets_any(alternatives, place.known)


class SpreadRule(Struct, frozen=True):
    """A spread constraint over a count, by its number; `own`: 1 if it selects its own pod."""

    count: int
    max_skew: int
    min_domains: int
    own: int


class PodRules(Struct, frozen=True):
    """Of one pair: the constraints that bind it, by numbers of counts. `first`: it may be the first of those it
    wants to be with. `evenly` and `liked` are what it would rather have: spreads, and who is welcome around it (or not)
    by how much."""

    spreads: tuple[SpreadRule, ...]
    together: tuple[int, ...]
    apart: tuple[int, ...]
    first: bool
    evenly: tuple[SpreadRule, ...]
    liked: tuple[tuple[int, int], ...]

    @property
    def may_be_met_later(self) -> bool:
        """Whether pods that are bound may make a place for one that found none; else there is less room only."""
        return bool(self.spreads or self.together)


class InterpodRules:
    """Of the pods of one problem. `counts` are in the order of their numbers."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._by_identity: dict[object, int] = {}
        self.counts: list[PodCountRule] = []
        self._entered: dict[ShapeKey, tuple[int, ...]] = {}
        pending = {(each.namespace, each.shape) for each in problem.pods}
        pairs = sorted(pending | {(each.namespace, each.shape) for each in problem.bound})
        self._keepers = [keeper for pair in pairs for keeper in self._keeping_away(pair)]
        self._fans = [fan for pair in pairs for fan in self._seeking(pair)]
        self.demands = {pair: self._of(pair) for pair in sorted(pending)}

    def entered(self, pair: ShapeKey) -> tuple[int, ...]:
        """The counts that a pod of this pair enters."""
        found = self._entered.get(pair)
        if found is None:
            found = self._entered[pair] = tuple(each.number for each in self.counts if each.selects(pair))
        return found

    def _of(self, pair: ShapeKey) -> PodRules:
        namespace, digest = pair
        shape = self._problem.shapes[digest]
        required = [each for each in shape.affinity if not each.weight]
        selectors = tuple(self._selector(each, namespace, shape) for each in required)
        apart = [
            self._count(each.topology_key, (self._selector(each, namespace, shape),))
            for each in shape.anti_affinity
            if not each.weight
        ]
        liked: Counter[int] = Counter()
        for number, weight in self._preferred(pair, shape):
            liked[number] += weight
        for fond_of, number, weight in self._fans:
            if self._selects((fond_of,), pair):
                liked[number] += weight
        return PodRules(
            tuple(self._spread(pair, shape, each) for each in shape.spread if each.when_unsatisfiable == HARD_SPREAD),
            tuple(self._count(each.topology_key, selectors) for each in required),
            (*apart, *(count for keeps_away, count in self._keepers if self._selects((keeps_away,), pair))),
            bool(required) and self._selects(selectors, pair),
            tuple(self._spread(pair, shape, each) for each in shape.spread if each.when_unsatisfiable != HARD_SPREAD),
            tuple(liked.items()),
        )

    def _preferred(self, pair: ShapeKey, shape: PodShape) -> Iterable[tuple[int, int]]:
        for terms, sign in ((shape.affinity, 1), (shape.anti_affinity, -1)):
            for each in terms:
                if each.weight:
                    yield self._count(each.topology_key, (self._selector(each, pair[0], shape),)), sign * each.weight

    def _spread(self, pair: ShapeKey, shape: PodShape, each: SpreadConstraint) -> SpreadRule:
        selectors = (spread_selector(each, pair[0], shape.labels),)
        hard = each.when_unsatisfiable == HARD_SPREAD
        asked = (
            alternatives_of(shape) if each.node_affinity_policy == "Honor" else (),
            shape.tolerations if each.node_taints_policy == "Honor" else None,
            tuple(sorted(hard_keys(shape) - {normalise(each.topology_key)})) if hard else (),
        )
        count = self._count(each.topology_key, selectors, asked)
        return SpreadRule(count, each.max_skew, each.min_domains or 0, int(self._selects(selectors, pair)))

    def _keeping_away(self, pair: ShapeKey) -> Iterable[tuple[PodSelector, int]]:
        """For each required anti-affinity term of a pod: whom it keeps away, and the count of such pods."""
        shape = self._problem.shapes[pair[1]]
        for each in shape.anti_affinity:
            if not each.weight:
                yield self._selector(each, pair[0], shape), self._owners(pair, each.topology_key)

    def _seeking(self, pair: ShapeKey) -> Iterable[tuple[PodSelector, int, int]]:
        """The same for its other terms, with how welcome such pods are to it; a required one counts 1."""
        shape = self._problem.shapes[pair[1]]
        for terms, sign in ((shape.affinity, 1), (shape.anti_affinity, -1)):
            for each in terms:
                if each.weight or sign > 0:
                    owners = self._owners(pair, each.topology_key)
                    yield self._selector(each, pair[0], shape), owners, sign * (each.weight or 1)

    def _owners(self, pair: ShapeKey, key: str) -> int:
        """The count of the pods of one pair."""
        return self._known((normalise(key), pair), normalise(key), pair.__eq__, EVERY_NODE)

    def _selector(self, term: AffinityTerm, namespace: str, shape: PodShape) -> PodSelector:
        return term_selector(term, namespace, shape.labels, self._problem.namespaces)

    def _selects(self, selectors: PodSelectors, pair: ShapeKey) -> bool:
        labels = self._problem.shapes[pair[1]].labels
        return all(each.selects(pair[0], labels) for each in selectors)

    def _count(self, key: str, selectors: PodSelectors, asked: NodeFilter = EVERY_NODE) -> int:
        """The count of the pods that all these select, on the nodes that are asked for."""
        identity = normalise(key), selectors, asked
        return self._known(identity, normalise(key), partial(self._selects, selectors), asked)

    def _known(self, identity: object, key: str, selects: Callable[[ShapeKey], bool], asked: NodeFilter) -> int:
        found = self._by_identity.get(identity)
        if found is None:
            found = self._by_identity[identity] = len(self.counts)
            self.counts.append(PodCountRule(found, key, selects, asked))
        return found


def meets_any(alternatives: Iterable[Requirements], labels: Requirements) -> bool:
    """Whether a node's labels meet the nodeSelector and some required term of a pod (see `alternatives_of`)."""
    return any(not each or labels.compatible(each) for each in alternatives)


def max_pods_per_node(pair: ShapeKey, problem: Problem) -> int:
    """How many pods of a pair may be on one node by their own rules, where that is limited whatever their number; 0 if
    it is not."""
    namespace, digest = pair
    shape = problem.shapes[digest]
    own = namespace, shape.labels
    apart = (each for each in shape.anti_affinity if not each.weight and each.topology_key == HOSTNAME)
    evenly = (each for each in shape.spread if each.when_unsatisfiable == HARD_SPREAD)
    limits = [1 for each in apart if term_selector(each, *own, problem.namespaces).selects(*own)]
    limits += [e.max_skew for e in evenly if e.topology_key == HOSTNAME and spread_selector(e, *own).selects(*own)]
    return min(limits, default=0)
