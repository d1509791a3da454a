"""An index of pods by their labels, so that a selector has to be compared with few of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kerf.engine.scheduling.matching.label_selectors import PodSelector
from kerf.engine.scheduling.problem.problem import Problem, ShapeKey


class PodsByLabel:
    """The index over some pods of a problem, given by their shape keys."""

    def __init__(self, problem: Problem, shape_keys: Iterable[ShapeKey]) -> None:
        self._shapes = problem.shapes
        self._all = sorted(shape_keys)
        self._by_label: dict[tuple[str, str], list[ShapeKey]] = defaultdict(list)
        for shape_key in self._all:
            for label in self._shapes[shape_key[1]].labels.items():
                self._by_label[label].append(shape_key)
        self._selected: dict[PodSelector, list[ShapeKey]] = {}

    def selected(self, selector: PodSelector) -> list[ShapeKey]:
        """The shape keys of the pods that a selector takes, sorted."""
        selected = self._selected.get(selector)
        if selected is None:
            possible = self._by_label.get(selector.labels[0], []) if selector.labels else self._all
            selected = [key for key in possible if selector.selects(key[0], self._shapes[key[1]].labels)]
            self._selected[selector] = selected
        return selected
