"""The part of a large problem that concerns some pods, so that a change can be tried on fewer pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.kube_scheduler.interpod_rules import ShapeKey
from kerf.engine.scheduling.matching.label_selectors import PodSelector, shape_selectors
from kerf.engine.scheduling.problem.problem import Problem


def problem_of_related_pods(problem: Problem, uids: Iterable[str]) -> Problem:
    """The problem with only these pods (uids) and the waiting pods that are related to them.

    A pod is related if one of its selectors (of spreads and affinity terms) selects one of these pods, or a pod that is
    selected by one of their selectors, or if they select it. The room and the limits that other pods would take stay
    free here. So a change that helps no pod in this part helps none in the whole; one that does help must be tried
    there, too.
    """
    chosen = frozenset(uids)
    shape_keys = dict.fromkeys((pod.namespace, pod.shape) for pod in problem.pods)
    selectors = {key: shape_selectors(problem.shapes[key[1]], key[0], problem.namespaces) for key in shape_keys}
    chosen_keys = dict.fromkeys((pod.namespace, pod.shape) for pod in problem.pods if pod.uid in chosen)
    own_selectors = frozenset(selector for key in chosen_keys for selector in selectors[key])
    selecting_them = frozenset(
        selector
        for selector in dict.fromkeys(chain.from_iterable(selectors.values()))
        if any(_selects(selector, problem.shapes, key) for key in chosen_keys)
    )
    related = {
        key
        for key, of_shape in selectors.items()
        if key in chosen_keys
        or not selecting_them.isdisjoint(of_shape)
        or any(_selects(selector, problem.shapes, key) for selector in own_selectors)
    }
    return replace(problem, pods=tuple(pod for pod in problem.pods if (pod.namespace, pod.shape) in related))


def _selects(selector: PodSelector, shapes: Mapping[str, PodShape], shape_key: ShapeKey) -> bool:
    return selector.selects(shape_key[0], shapes[shape_key[1]].labels)
