"""What pods demand of the pods around them: topology spread, affinity and anti-affinity, compiled once for a problem.

Every rule is about a count: how many pods of some sort are in each domain of a topology key (`PodCountRule`). The
numbers themselves are kept in `interpod_counts`. This is written apart from the planner's own topology, so that each
can find an error of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, SpreadConstraint, Toleration
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.kube_scheduler.filters import node_affinity, taint_toleration
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.matching.label_selectors import PodSelector, spread_selector, term_selector
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD, alternatives_of, hard_keys, hard_spreads
from kerf.engine.scheduling.problem.problem import Problem, ShapeKey

PodSelectors = tuple[PodSelector, ...]
"""A pod must match all of them."""
NodeFilter = tuple[tuple[Requirements, ...], tuple[Toleration, ...] | None, tuple[str, ...]]
"""The nodes that a spread counts on. They meet one of these requirements (any node if there are none), their taints are
tolerated by these tolerations (None: taints do not matter), and they have these labels."""
EVERY_NODE: NodeFilter = (), None, ()


class PodCountRule(Struct, frozen=True):
    """Count the pods that `selects` takes, by domain of a topology key, on the nodes that pass the filter. `number`
    tells counts apart."""

    number: int
    key: str
    selects: Callable[[ShapeKey], bool]
    node_filter: NodeFilter

    @property
    def on_every_node(self) -> bool:
        """Whether no node is left out."""
        alternatives, tolerations, keys = self.node_filter
        return tolerations is None and not keys and all(not alternative for alternative in alternatives)

    def counts_on(self, node: NodeInfo) -> bool:
        """Whether pods on this node are counted."""
        alternatives, tolerations, keys = self.node_filter
        if any(node.domain(key) is None for key in keys):
            return False
        if tolerations is not None and not taint_toleration(node.taints, tolerations):
            return False
        return not alternatives or node_affinity(alternatives, node.label_requirements)


class SpreadRule(Struct, frozen=True):
    """A topology spread constraint on a count (by number). `own` is 1 if it selects the pod that has it."""

    count: int
    max_skew: int
    min_domains: int
    own: int


class PodRules(Struct, frozen=True):
    """What pods of one shape demand of other pods; all numbers are of counts.

    Filters: `hard_spreads`; `affinity` (a pod must be there) and `may_be_first` (unless there is none anywhere and the
    pod matches its own terms); `anti_affinity` (none may be there, by the pod's own terms or those of others).
    Scores: `soft_spreads`, and `preferred`, counts with the weight of each pod in them (negative: unwelcome).
    """

    hard_spreads: tuple[SpreadRule, ...]
    affinity: tuple[int, ...]
    anti_affinity: tuple[int, ...]
    may_be_first: bool
    soft_spreads: tuple[SpreadRule, ...]
    preferred: tuple[tuple[int, int], ...]

    @property
    def may_be_met_later(self) -> bool:
        """Whether binding other pods can open a node for a pod that found none; otherwise nodes only fill up."""
        return bool(self.hard_spreads or self.affinity)


class InterpodRules:
    """The rules between the pods of one problem.

    `counts` are in the order of their numbers; `by_shape` has the rules of each shape that is waiting.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._numbers: dict[object, int] = {}
        self.counts: list[PodCountRule] = []
        self._entered: dict[ShapeKey, tuple[int, ...]] = {}
        pending = problem.pods_of_kind.keys()
        present = sorted(pending | {pod.shape_key for pod in problem.bound})
        self._repelling = [term for shape_key in present for term in self._repelling_terms(shape_key)]
        self._attracting = [term for shape_key in present for term in self._attracting_terms(shape_key)]
        self.by_shape = {shape_key: self._rules_of(shape_key) for shape_key in sorted(pending)}

    def counts_entered(self, shape_key: ShapeKey) -> tuple[int, ...]:
        """The counts (by number) that a pod of this shape adds to."""
        entered = self._entered.get(shape_key)
        if entered is None:
            entered = tuple(count.number for count in self.counts if count.selects(shape_key))
            self._entered[shape_key] = entered
        return entered

    def _rules_of(self, shape_key: ShapeKey) -> PodRules:
        namespace, digest = shape_key
        shape = self._problem.shapes[digest]
        required = [term for term in shape.affinity if not term.weight]
        selectors = tuple(self._selector(term, namespace, shape) for term in required)
        anti_affinity = [
            self._count(term.topology_key, (self._selector(term, namespace, shape),))
            for term in shape.anti_affinity
            if not term.weight
        ]
        preferred: Counter[int] = Counter()
        for count, weight in self._preferred(shape_key, shape):
            preferred[count] += weight
        for selector, count, weight in self._attracting:
            if self._selects((selector,), shape_key):
                preferred[count] += weight
        spreads = shape.spread
        return PodRules(
            tuple(
                self._spread(shape_key, shape, spread) for spread in spreads if spread.when_unsatisfiable == HARD_SPREAD
            ),
            tuple(self._count(term.topology_key, selectors) for term in required),
            (
                *anti_affinity,
                *(count for selector, count in self._repelling if self._selects((selector,), shape_key)),
            ),
            bool(required) and self._selects(selectors, shape_key),
            tuple(
                self._spread(shape_key, shape, spread) for spread in spreads if spread.when_unsatisfiable != HARD_SPREAD
            ),
            tuple(preferred.items()),
        )

    def _preferred(self, shape_key: ShapeKey, shape: PodShape) -> Iterable[tuple[int, int]]:
        """The count and weight of each of the pod's preferred terms."""
        for terms, sign in ((shape.affinity, 1), (shape.anti_affinity, -1)):
            for term in terms:
                if term.weight:
                    selector = self._selector(term, shape_key[0], shape)
                    yield self._count(term.topology_key, (selector,)), sign * term.weight

    def _spread(self, shape_key: ShapeKey, shape: PodShape, constraint: SpreadConstraint) -> SpreadRule:
        selectors = (spread_selector(constraint, shape_key[0], shape.labels),)
        hard = constraint.when_unsatisfiable == HARD_SPREAD
        node_filter = (
            alternatives_of(shape) if constraint.node_affinity_policy == "Honor" else (),
            shape.tolerations if constraint.node_taints_policy == "Honor" else None,
            tuple(sorted(hard_keys(shape) - {normalise(constraint.topology_key)})) if hard else (),
        )
        count = self._count(constraint.topology_key, selectors, node_filter)
        own = int(self._selects(selectors, shape_key))
        return SpreadRule(count, constraint.max_skew, constraint.min_domains or 0, own)

    def _repelling_terms(self, shape_key: ShapeKey) -> Iterable[tuple[PodSelector, int]]:
        """For each required anti-affinity term of such pods: whom it keeps away, and the count of such pods."""
        shape = self._problem.shapes[shape_key[1]]
        for term in shape.anti_affinity:
            if not term.weight:
                yield self._selector(term, shape_key[0], shape), self._count_of(shape_key, term.topology_key)

    def _attracting_terms(self, shape_key: ShapeKey) -> Iterable[tuple[PodSelector, int, int]]:
        """For each other term of such pods: whom it attracts (or repels), the count of such pods, and the weight; a
        required affinity term weighs 1."""
        shape = self._problem.shapes[shape_key[1]]
        for terms, sign in ((shape.affinity, 1), (shape.anti_affinity, -1)):
            for term in terms:
                if term.weight or sign > 0:
                    count = self._count_of(shape_key, term.topology_key)
                    yield self._selector(term, shape_key[0], shape), count, sign * (term.weight or 1)

    def _count_of(self, shape_key: ShapeKey, topology_key: str) -> int:
        """The number of the count of the pods of one shape."""
        topology_key = normalise(topology_key)
        return self._number((topology_key, shape_key), topology_key, shape_key.__eq__, EVERY_NODE)

    def _selector(self, term: AffinityTerm, namespace: str, shape: PodShape) -> PodSelector:
        return term_selector(term, namespace, shape.labels, self._problem.namespaces)

    def _selects(self, selectors: PodSelectors, shape_key: ShapeKey) -> bool:
        labels = self._problem.shapes[shape_key[1]].labels
        return all(selector.selects(shape_key[0], labels) for selector in selectors)

    def _count(self, topology_key: str, selectors: PodSelectors, node_filter: NodeFilter = EVERY_NODE) -> int:
        """The number of the count of the pods that all these selectors take, on the nodes that pass the filter."""
        topology_key = normalise(topology_key)
        identity = topology_key, selectors, node_filter
        return self._number(identity, topology_key, partial(self._selects, selectors), node_filter)

    def _number(
        self, identity: object, topology_key: str, selects: Callable[[ShapeKey], bool], node_filter: NodeFilter
    ) -> int:
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self.counts)
            self.counts.append(PodCountRule(number, topology_key, selects, node_filter))
        return number


def max_pods_per_node(shape_key: ShapeKey, problem: Problem) -> int:
    """How many pods of one shape their own rules allow on one node; 0 if they set no fixed limit."""
    namespace, digest = shape_key
    shape = problem.shapes[digest]
    own = namespace, shape.labels
    anti_affinity = (term for term in shape.anti_affinity if not term.weight and term.topology_key == HOSTNAME)
    spreads = hard_spreads(shape)
    limits = [1 for term in anti_affinity if term_selector(term, *own, problem.namespaces).selects(*own)]
    limits += [e.max_skew for e in spreads if e.topology_key == HOSTNAME and spread_selector(e, *own).selects(*own)]
    return min(limits, default=0)
