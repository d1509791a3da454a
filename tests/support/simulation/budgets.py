"""Simulations under disruption budgets."""

from __future__ import annotations

from typing import Any

from tests.support.simulation.run import workshop


def given(*actions: dict[str, Any], more: tuple[Any, ...] = (), **disruption: Any) -> list[Any]:
    """The workshop with a disruption section of its NodePool, and other documents."""
    found = [*workshop(*actions), *more]
    for document in found:
        if document["kind"] == "NodePool":
            document["spec"].setdefault("disruption", {}).update(disruption)
    return found


def budget(max_unavailable: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "inflate", "namespace": "other"},
        "spec": {"maxUnavailable": max_unavailable, "selector": {"matchLabels": {"app": "inflate"}}},
    }
