"""Of a large problem the part that is about some pods: they, whom they look at, and who looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.kube_scheduler.interpod_rules import ShapeKey
from kerf.engine.scheduling.matching.label_selectors import PodSelector, shape_selectors
from kerf.engine.scheduling.problem.problem import Problem


def problem_of_related_pods(problem: Problem, uids: Iterable[str]) -> Problem:
    """The same question about these pods and those that a spread, or a term of affinity, of either of the two selects.
    What others take of nodes and limits is left to them here: the part shows what may help, the whole whether it
    does."""
    wanted = frozenset(uids)
    pairs = dict.fromkeys((each.namespace, each.shape) for each in problem.pods)
    selectors = {pair: shape_selectors(problem.shapes[pair[1]], pair[0], problem.namespaces) for pair in pairs}
    those = dict.fromkeys((each.namespace, each.shape) for each in problem.pods if each.uid in wanted)
    looked_at = frozenset(each for pair in those for each in selectors[pair])
    looking = frozenset(
        each
        for each in dict.fromkeys(each for found in selectors.values() for each in found)
        if any(_selects(each, problem.shapes, pair) for pair in those)
    )
    kept = {
        pair
        for pair, found in selectors.items()
        if pair in those
        or not looking.isdisjoint(found)
        or any(_selects(each, problem.shapes, pair) for each in looked_at)
    }
    return replace(problem, pods=tuple(each for each in problem.pods if (each.namespace, each.shape) in kept))


def _selects(selector: PodSelector, shapes: Mapping[str, PodShape], pair: ShapeKey) -> bool:
    return selector.selects(pair[0], shapes[pair[1]].labels)
