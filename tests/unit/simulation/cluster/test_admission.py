"""PriorityClasses: which priority a pod is created with, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kerf.adapters.simulation.cluster.admission import with_priority
from kerf.adapters.simulation.documents.apply import apply_document
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.kubernetes.priority_classes import PriorityClass

CLASSES = {
    priority_class.name: priority_class
    for priority_class in (PriorityClass("high", 1_000), PriorityClass("usual", 10, default=True))
}


@pytest.mark.parametrize(
    ("named", "given", "priority"),
    [
        ("high", 0, 1_000), ("", 0, 10), ("high", 5, 5), ("system-node-critical", 0, 2_000_001_000),
        ("unheard-of", 0, 0),
    ],
)  # fmt: skip
def test_the_priority_is_that_of_the_class(named: str, given: int, priority: int) -> None:
    assert with_priority(PodShape(priority_class=named, priority=given), CLASSES).priority == priority


def test_without_a_default_class_a_pod_has_no_priority() -> None:
    assert with_priority(PodShape(), {}) == PodShape()


def test_a_pod_of_a_higher_class_is_bound_first(world: Simulation, node: Callable[..., Node]) -> None:
    def pod(name: str, of: str) -> dict[str, Any]:
        spec = {"priorityClassName": of, "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    for document in ({**head, "value": 7}, pod("a-low", ""), pod("b-high", "high")):
        assert apply_document(world, document) == []
    world.cluster.apply(node("n"))
    world.clock.advance(world.clock.now + 1_000)
    assert {bound.name: bound.node for bound in world.cluster.api.pods.values()} == {"a-low": "", "b-high": "n"}
