"""Write a NodePool of the record as the manifest that it came from, so that one field of it can be changed."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.durations import format_duration
from kerf.engine.model.karpenter.nodepools import Budget, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.quantities import format_quantity

Document = dict[str, Any]


def node_pool_document(pool: NodePool) -> Document:
    """Return the karpenter.sh/v1 manifest with every field that the record keeps. Fields that are not set are left
    out."""
    template: Document = {"metadata": _set({"labels": pool.labels, "annotations": pool.annotations})}
    template["spec"] = _set(
        {
            "nodeClassRef": {
                "group": pool.node_class.group,
                "kind": pool.node_class.kind,
                "name": pool.node_class.name,
            },
            "requirements": [requirement_document(requirement) for requirement in pool.requirements],
            "taints": [taint_document(taint) for taint in pool.taints],
            "startupTaints": [taint_document(taint) for taint in pool.startup_taints],
            "expireAfter": format_duration(pool.expire_after),
            "terminationGracePeriod": _optional_duration(pool.termination_grace_period),
        },
        keep=("requirements",),
    )
    spec: Document = {
        "template": template,
        "disruption": {
            "consolidationPolicy": pool.consolidation_policy,
            "consolidateAfter": format_duration(pool.consolidate_after),
            "budgets": [_budget_document(budget) for budget in pool.budgets],
        },
    }
    if pool.limits is not None:
        spec["limits"] = {name: format_quantity(amount, name) for name, amount in pool.limits.items()}
    spec |= _set({"weight": pool.weight or None, "replicas": pool.replicas})
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": _set({"name": pool.name, "uid": pool.uid, "generation": pool.generation or None}),
        "spec": spec,
    }


def requirement_document(requirement: RequirementSpec) -> Document:
    """Return one entry of spec.requirements."""
    document: Document = {"key": requirement.key, "operator": requirement.operator}
    if requirement.values:
        document["values"] = list(requirement.values)
    if requirement.min_values is not None:
        document["minValues"] = requirement.min_values
    return document


def taint_document(taint: Taint) -> Document:
    """Return a taint as in a manifest."""
    return _set({"key": taint.key, "value": taint.value, "effect": taint.effect})


def _budget_document(budget: Budget) -> Document:
    return _set(
        {
            "nodes": budget.nodes,
            "schedule": budget.schedule,
            "duration": _optional_duration(budget.duration),
            "reasons": list(budget.reasons),
        }
    )


def _optional_duration(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_duration(milliseconds)


def _set(fields: Document, keep: tuple[str, ...] = ()) -> Document:
    """Leave out the fields that are not set: None, and empty texts, lists and maps."""
    return {
        name: value
        for name, value in fields.items()
        if name in keep or (value is not None and value not in ("", [], {}))
    }
