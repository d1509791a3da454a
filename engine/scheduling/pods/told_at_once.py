"""Which of the pods that are planned for a new node are told it (status.nominatedNodeName) at the same time.

kube-scheduler counts a nominated pod as if it were on its node already (KEP-5278), for topology spreads, too. With more
pods told each node than their skew allows none of them could be bound first. So of the pods that a hard spread counts
as many are told a node at a time as its skew allows; the next one is told when one of these is bound. A spread over a
label that is the same on all nodes refuses nobody, so its pods are all told at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from kerf.engine.model.kubernetes.pods import PodShape, SpreadConstraint
from kerf.engine.model.labels import normalise
from kerf.engine.scheduling.matching.label_selectors import spread_selector
from kerf.engine.scheduling.pods.pod_requirements import hard_spreads

MAX_PAIRS_KNOWN = 20_000
"""For so many pairs of kinds of pods it is kept whether one counts for the other, and for so many kinds their skew."""
Kind = tuple[str, str]
"""The namespace and the shape (digest) of a pod."""
ShapeOf = Callable[[str], PodShape]
"""Gives the shape of a digest."""


class Planned(Protocol):
    """A pod that is planned for a node. `shape`: the digest of its PodShape."""

    @property
    def namespace(self) -> str: ...
    @property
    def shape(self) -> str: ...


AnyPlanned = TypeVar("AnyPlanned", bound=Planned)


def labels_of_all(
    shapes: Iterable[PodShape], nodes: Iterable[Mapping[str, str]], requested: Iterable[Mapping[str, str]] = ()
) -> frozenset[str]:
    """Those of the labels that such pods are spread over which have the same value on all nodes. `nodes`: the labels of
    each node that is there or comes. `requested`: those that are known of nodes which are not launched yet; others may
    become anything, so they say nothing."""
    keys = {normalise(spread.topology_key) for shape in shapes for spread in hard_spreads(shape)}
    values: dict[str, str | None] = {}
    for labels in nodes:
        keys = {key for key in keys if key in labels and values.setdefault(key, labels[key]) == labels[key]}
        if not keys:
            break
    for labels in requested:
        keys = {key for key in keys if key not in labels or values.setdefault(key, labels[key]) == labels[key]}
    return frozenset(keys)


class ToldAtOnce:
    """The choice for any number of nodes; it keeps which kinds of pods count for each other. `one_domain`: the labels
    that are the same on all nodes (`labels_of_all`)."""

    def __init__(self, one_domain: frozenset[str] = frozenset()) -> None:
        self.one_domain = one_domain
        self._counted: dict[tuple[Kind, Kind], bool] = {}
        self._skews: dict[str, int] = {}  # shape → `_least_hard_skew`

    def of(self, pods: Iterable[AnyPlanned], shape_of: ShapeOf) -> Iterator[AnyPlanned]:
        """The pods of one node that are told it now, if the first ones come first. None is told that would be one more
        than the skew of another allows, whether it has a spread of its own or not."""
        told: Counter[Kind] = Counter()
        counted: dict[Kind, int] = {}  # a kind that is told, and has a hard spread → how many told pods that counts
        for pod in pods:
            kind = pod.namespace, pod.shape
            news = {other: counted[other] + 1 for other in counted if self._counts(other, kind, shape_of)}
            if kind not in counted and self._least_hard_skew(pod.shape, shape_of):
                others = sum(number for other, number in told.items() if self._counts(kind, other, shape_of))
                news[kind] = others + self._counts(kind, kind, shape_of)
            if all(number <= self._least_hard_skew(shape, shape_of) for (_, shape), number in news.items()):
                told[kind] += 1
                counted |= news
                yield pod

    def _least_hard_skew(self, digest: str, shape_of: ShapeOf) -> int:
        """The smallest skew that a hard spread of the shape allows; 0 without such a spread that may refuse it."""
        known = self._skews.get(digest)
        if known is None:
            if len(self._skews) >= MAX_PAIRS_KNOWN:
                self._skews.clear()
            skews = (spread.max_skew for spread in self._refusing(shape_of(digest)))
            known = self._skews[digest] = min(skews, default=0)
        return known

    def _counts(self, kind: Kind, other: Kind, shape_of: ShapeOf) -> bool:
        """Whether a hard spread of the one pod counts the other. Pods without one do not wait for a spread that counts
        every pod of the namespace: hardly any of them would be told."""
        known = self._counted.get((kind, other))
        if known is None:
            if len(self._counted) >= MAX_PAIRS_KNOWN:
                self._counted.clear()
            shape, labels = shape_of(kind[1]), shape_of(other[1]).labels
            selectors = (spread_selector(constraint, kind[0], shape.labels) for constraint in self._refusing(shape))
            if not self._least_hard_skew(other[1], shape_of):
                selectors = (selector for selector in selectors if selector.labels or selector.expressions)
            known = self._counted[kind, other] = any(selector.selects(other[0], labels) for selector in selectors)
        return known

    def _refusing(self, shape: PodShape) -> list[SpreadConstraint]:
        """The hard spreads by which a node may refuse such a pod: those over several domains, or that want several."""
        return [
            spread
            for spread in hard_spreads(shape)
            if normalise(spread.topology_key) not in self.one_domain or (spread.min_domains or 1) > 1
        ]
