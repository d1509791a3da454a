"""Which of the pods that are planned for a new node are told it (status.nominatedNodeName) at the same time.

kube-scheduler counts a nominated pod as if it were on its node already (KEP-5278), for topology spreads, too. With more
pods told each node than their skew allows none of them could be bound first. So of pods with a hard spread as many are
told a node at a time as the skew allows; the next one is told when one of these is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from kerf.engine.model.kubernetes.pods import PodShape
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


class ToldAtOnce:
    """The choice for any number of nodes; it keeps which kinds of pods count for each other."""

    def __init__(self) -> None:
        self._counted: dict[tuple[Kind, Kind], bool] = {}
        self._skews: dict[str, int] = {}  # shape → `_least_hard_skew`

    def of(self, pods: Iterable[AnyPlanned], shape_of: ShapeOf) -> Iterator[AnyPlanned]:
        """The pods of one node that are told it now, if the first ones come first."""
        told: list[Kind] = []
        for pod in pods:
            if not self._least_hard_skew(pod.shape, shape_of):
                yield pod
                continue
            kind = pod.namespace, pod.shape
            others = [other for other in told if self._count_each_other(kind, other, shape_of)]
            if all(len(others) < self._least_hard_skew(shape, shape_of) for _, shape in (kind, *others)):
                told.append(kind)
                yield pod

    def _least_hard_skew(self, digest: str, shape_of: ShapeOf) -> int:
        """The smallest skew that a hard spread of the shape allows; 0 without such a spread."""
        known = self._skews.get(digest)
        if known is None:
            if len(self._skews) >= MAX_PAIRS_KNOWN:
                self._skews.clear()
            skews = (spread.max_skew for spread in hard_spreads(shape_of(digest)))
            known = self._skews[digest] = min(skews, default=0)
        return known

    def _count_each_other(self, kind: Kind, other: Kind, shape_of: ShapeOf) -> bool:
        """Whether a hard spread of the one pod counts the other."""
        known = self._counted.get((kind, other))
        if known is None:
            if len(self._counted) >= MAX_PAIRS_KNOWN:
                self._counted.clear()
            known = self._counted[kind, other] = _counts(kind, other, shape_of) or _counts(other, kind, shape_of)
        return known


def _counts(kind: Kind, other: Kind, shape_of: ShapeOf) -> bool:
    shape, labels = shape_of(kind[1]), shape_of(other[1]).labels
    selectors = (spread_selector(constraint, kind[0], shape.labels) for constraint in hard_spreads(shape))
    return any(selector.selects(other[0], labels) for selector in selectors)
