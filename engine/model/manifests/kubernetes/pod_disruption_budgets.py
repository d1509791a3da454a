"""PodDisruptionBudgets (policy/v1)."""

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.manifests.kubernetes.pod_shapes import read_selector
from kerf.engine.model.manifests.kubernetes.pods_wire import LabelSelectorWire
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    Int32,
    ObjectWire,
    Read,
    Wire,
    identity,
)


class BudgetSpecWire(Wire):
    selector: LabelSelectorWire | None = None
    max_unavailable: str | Int32 | None = None
    min_available: str | Int32 | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatusWire(Wire):
    disruptions_allowed: Int32 = 0
    expected_pods: Int32 = 0
    desired_healthy: Int32 = 0


class BudgetWire(ObjectWire):
    spec: BudgetSpecWire = field(default_factory=BudgetSpecWire)
    status: BudgetStatusWire = field(default_factory=BudgetStatusWire)


_read = msgspec.json.Decoder(BudgetWire).decode


def read_pod_disruption_budget(data: bytes, report: Report) -> Read:
    """A policy/v1 PodDisruptionBudget; integers of int-or-string fields become texts."""
    wire = _read(data)
    namespace, uid = identity(report, wire.metadata)
    spec = wire.spec
    policy = spec.unhealthy_pod_eviction_policy or "IfHealthyBudget"
    report.one_of("spec.unhealthyPodEvictionPolicy", policy, ("IfHealthyBudget", "AlwaysAllow"))
    for name, value in (("maxUnavailable", spec.max_unavailable), ("minAvailable", spec.min_available)):
        _check_bound(report, f"spec.{name}", value)
    if spec.max_unavailable is not None and spec.min_available is not None:
        report.add("KERF310", "spec.maxUnavailable", "maxUnavailable and minAvailable exclude each other")
    budget = PodDisruptionBudget(
        uid=uid,
        namespace=namespace,
        name=wire.metadata.name,
        selector=read_selector(report, "spec.selector", spec.selector),
        max_unavailable=None if spec.max_unavailable is None else str(spec.max_unavailable),
        min_available=None if spec.min_available is None else str(spec.min_available),
        disruptions_allowed=wire.status.disruptions_allowed,
        always_allow_unhealthy=policy == "AlwaysAllow",
        expected_pods=wire.status.expected_pods,
        desired_healthy=wire.status.desired_healthy,
    )
    return Read(budget, {})


def _check_bound(report: Report, path: str, value: str | int | None) -> None:
    if isinstance(value, int):
        if value < 0:
            report.add("KERF309", path, f"A number of pods is at least 0, not {value}")
    elif value is not None and not (value.endswith("%") and value[:-1].isascii() and value[:-1].isdigit()):
        report.add("KERF309", path, f"{value!r} is neither an integer nor a percentage", 'Write 1 or "50%"')
