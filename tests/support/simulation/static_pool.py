"""Simulations with a static NodePool."""

from __future__ import annotations

import copy
from typing import Any

from kerf.engine.model.settings import Settings
from tests.support.simulation.run import HOUR, Run, workshop

STATIC = Settings(static_capacity=True)


def document(replicas: int, **template: str) -> dict[str, Any]:
    """The workshop's static NodePool; `template` are labels of it."""
    found = next(d for d in workshop() if d["kind"] == "NodePool")
    made: dict[str, Any] = copy.deepcopy(found)
    made["spec"]["replicas"] = replicas
    made["spec"].pop("weight", None)
    made["spec"].pop("limits", None)
    made["spec"]["disruption"] = {"budgets": [{"nodes": "50%"}]}
    made["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {}).update(template)
    return made


def run(replicas: int, *actions: dict[str, Any], settings: Settings = STATIC) -> Run:
    others = [d for d in workshop(*actions) if d["kind"] != "NodePool"]
    return Run([document(replicas), *others], until=2 * HOUR, settings=settings)
