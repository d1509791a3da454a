"""The part of a large problem that concerns some pods, so that a change can be tried on fewer pods."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kerf.engine.scheduling.matching.label_selectors import shape_selectors
from kerf.engine.scheduling.optimizer.pods_by_label import PodsByLabel
from kerf.engine.scheduling.problem.problem import Problem


def problem_of_related_pods(problem: Problem, uids: Iterable[str]) -> Problem:
    """The problem with only these pods (uids) and the waiting pods that are related to them.

    A pod is related if one of its selectors (of spreads and affinity terms) selects one of these pods, or one of theirs
    selects it. The room and the limits that other pods would take stay free here. So a change that helps no pod in this
    part helps none in the whole; one that does help must be tried there, too.
    """
    chosen = frozenset(uids)
    shape_keys = problem.pods_of_kind.keys()
    selectors = {key: shape_selectors(problem.shapes[key[1]], key[0], problem.namespaces) for key in shape_keys}
    chosen_keys = {pod.shape_key for pod in problem.pods if pod.uid in chosen}
    of_chosen, of_all = PodsByLabel(problem, chosen_keys), PodsByLabel(problem, shape_keys)
    selected = {other for key in chosen_keys for selector in selectors[key] for other in of_all.selected(selector)}
    selecting = {key for key in shape_keys if any(map(of_chosen.selected, selectors[key]))}
    related = chosen_keys | selected | selecting
    return replace(problem, pods=tuple(pod for pod in problem.pods if pod.shape_key in related))
