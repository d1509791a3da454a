"""Edits of manifests in a simulation."""

from __future__ import annotations

import copy
from typing import Any

from tests.support.simulation.run import workshop


def edited(kind: str, path: str, value: Any) -> dict[str, Any]:
    """The workshop's document of this kind with one field set; the budget lets no move follow."""
    document: dict[str, Any] = copy.deepcopy(next(d for d in frozen() if d["kind"] == kind))
    *parents, last = path.split(".")
    at = document
    for part in parents:
        at = at.setdefault(part, {})
    at[last] = value
    return document


def frozen(*actions: dict[str, Any]) -> list[Any]:
    found = workshop(*actions)
    for document in found:
        if document["kind"] == "NodePool":
            document["spec"].setdefault("disruption", {})["budgets"] = [{"nodes": "0"}]
    return found


def apply(at: str, document: dict[str, Any]) -> dict[str, Any]:
    return {"at": at, "action": "apply", "object": document}
