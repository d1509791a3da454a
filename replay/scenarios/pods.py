"""Give pods of a scenario their defaults (docs/plan.md, section 1.1), and tell which pods of a leaving node need a
place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.scheduling.pods.evictability import EvictionRules


def reschedulable(
    pods: Iterable[Pod], budgets: Iterable[PodDisruptionBudget], shapes: Mapping[str, PodShape], now: int
) -> list[Pod]:
    """Return the pods that need another place because their node goes (S-46…S-49)."""
    rules = EvictionRules(shapes, tuple(budgets), now)
    return [pod for pod in pods if rules.moves(pod)]


def with_defaults(pod: dict[str, Any], now: str, bound: bool) -> dict[str, Any]:
    """Return a copy of one pod document with its defaults (docs/plan.md, section 1.1)."""
    metadata = {"namespace": "default", "creationTimestamp": now, **pod.get("metadata", {})}
    metadata.setdefault("uid", f"{metadata.get('namespace')}/{metadata.get('name')}")
    status = dict(pod.get("status", {}))
    spec = with_requests(pod.get("spec", {}))
    if bound:
        status.setdefault("phase", "Running")
        status.setdefault("startTime", metadata["creationTimestamp"])
        status.setdefault(
            "conditions", [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
        )
    elif "phase" not in status:
        status["phase"] = "Pending"
        unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status.setdefault("conditions", [unschedulable])
    return {**pod, "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def with_requests(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a pod spec whose containers request their limits, where they do not say what they request."""
    filled = dict(spec)
    for field in ("containers", "initContainers"):
        if field in spec:
            filled[field] = [_container(container) for container in spec[field]]
    return filled


def _container(container: dict[str, Any]) -> dict[str, Any]:
    resources = container.get("resources", {})
    if not resources.get("limits"):
        return container
    requests = {**resources["limits"], **resources.get("requests", {})}
    return {**container, "resources": {**resources, "requests": requests}}
