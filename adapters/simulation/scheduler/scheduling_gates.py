"""Read from a pod's document what keeps kube-scheduler off it: scheduling gates, and another scheduler's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KUBE_SCHEDULER = "default-scheduler"


def scheduling_gates(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the gates in a pod spec. While a pod has gates no scheduler looks at it, so it is never found
    unschedulable and nothing is launched for it (S-40)."""
    gates = spec.get("schedulingGates")
    named = [gate.get("name") for gate in gates if isinstance(gate, Mapping)] if isinstance(gates, list) else []
    return tuple(str(name) for name in named if name)


def other_scheduler_name(spec: Mapping[str, Any]) -> str:
    """Return the scheduler that a pod spec names, or "" for Kubernetes' own."""
    name = spec.get("schedulerName")
    return name if isinstance(name, str) and name != KUBE_SCHEDULER else ""
