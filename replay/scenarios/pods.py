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
    """Return a copy of one pod document with its defaults (docs/plan.md, section 1.1). What is malformed stays as it
    is: whoever decodes the pod says what is wrong."""
    own = {field: {} if pod.get(field) is None else pod[field] for field in ("metadata", "spec", "status")}
    if not all(isinstance(part, dict) for part in own.values()):
        return {**pod, "apiVersion": "v1", "kind": "Pod"}
    metadata = {"namespace": "default", "creationTimestamp": now, **own["metadata"]}
    metadata.setdefault("uid", f"{metadata.get('namespace')}/{metadata.get('name')}")
    status, spec = dict(own["status"]), with_requests(own["spec"])
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
        if isinstance(spec.get(field), list):
            filled[field] = [_container(container) for container in spec[field]]
    return filled


def _container(container: Any) -> Any:
    resources: Any = container.get("resources") if isinstance(container, dict) else None
    limits, requests = (_part(resources, field) for field in ("limits", "requests"))
    if not limits or requests is None:
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _part(resources: Any, field: str) -> dict[str, Any] | None:
    """Return limits or requests, empty if they are not there; None if they are malformed."""
    part = resources.get(field) if isinstance(resources, dict) else {}
    return {} if part is None else part if isinstance(part, dict) else None
