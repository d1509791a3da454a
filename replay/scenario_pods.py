"""Pods of a conformance scenario: the defaults of FORMAT.md, and which pods of a node that goes need
another place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.model.nodes import PodDisruptionBudget
from kerf.engine.model.pods import (
    NODE_OWNER,
    Pod,
    PodShape,
    Selector,
    Taint,
    is_active,
    is_reschedulable,
    owned_by,
)
from kerf.engine.scheduling.requirements import requirement
from kerf.engine.scheduling.taints import tolerates_all

DISRUPTED = Taint("karpenter.sh/disrupted", "NoSchedule")


def reschedulable(
    pods: Iterable[Pod], budgets: Iterable[PodDisruptionBudget], shapes: Mapping[str, PodShape], now: int
) -> list[Pod]:
    """The pods that need another place because their node goes (S-46, S-47)."""
    known = tuple(budgets)
    return [
        pod
        for pod in pods
        if is_reschedulable(pod)
        and not (is_active(pod) and protected(pod, now))
        and not blocked(pod, known, shapes, now)
    ]


def protected(pod: Pod, now: int) -> bool:
    """Whether do-not-disrupt is in force (S-48)."""
    if pod.do_not_disrupt in ("", "true"):
        return pod.do_not_disrupt == "true"
    try:
        length = parse_go_duration(pod.do_not_disrupt)
    except InputError:
        return False  # S-48: any other value is inactive
    return length > 0 and (not pod.started or now - pod.started < length)


def blocked(pod: Pod, budgets: Iterable[PodDisruptionBudget], shapes: Mapping[str, PodShape], now: int) -> bool:
    """Whether PodDisruptionBudgets rule out any eviction, whatever the state of other pods (S-49)."""
    shape = shapes[pod.shape]
    if not is_active(pod) or owned_by(pod, NODE_OWNER) or protected(pod, now):
        return False
    if tolerates_all([DISRUPTED], shape.tolerations):
        return False
    matching = [each for each in budgets if each.namespace == pod.namespace and selects(each.selector, shape.labels)]
    if len(matching) > 1:
        return True
    return any(
        each.max_unavailable in ("0", "0%") or each.min_available == "100%"
        for each in matching
        if pod.ready or not each.always_allow_unhealthy
    )


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; a missing one matches nothing."""
    if selector is None or any(labels.get(key) != value for key, value in selector.labels.items()):
        return False
    for each in selector.expressions:
        wanted = requirement(each.key, each.operator, each.values)
        value = labels.get(each.key)
        if value is None and each.operator not in ("NotIn", "DoesNotExist"):
            return False
        if value is not None and (each.operator == "DoesNotExist" or not wanted.has(value)):
            return False
    return True


def with_defaults(pod: dict[str, Any], now: str, bound: bool) -> dict[str, Any]:
    """The defaults of FORMAT.md for one pod document, as a new document."""
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
    """A pod spec whose containers request what they are limited to, unless they say otherwise."""
    made = dict(spec)
    for field in ("containers", "initContainers"):
        if field in spec:
            made[field] = [_container(each) for each in spec[field]]
    return made


def _container(container: dict[str, Any]) -> dict[str, Any]:
    resources = container.get("resources", {})
    if not resources.get("limits"):
        return container
    requests = {**resources["limits"], **resources.get("requests", {})}
    return {**container, "resources": {**resources, "requests": requests}}
