"""A pod's effective resource requests (S-30): what the scheduler must find room for.

Containers' limits stand in for requests that are not given, as the API server defaults them: pod templates
and manifests have not been through it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.manifests.kubernetes.pods_wire import (
    ContainerStatusWire,
    ContainerWire,
    PodSpecWire,
    PodStatusWire,
    ResourcesWire,
)
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import read_resources
from kerf.engine.model.quantities import LARGEST_AMOUNT


def effective_requests(report: Report, path: str, spec: PodSpecWire, status: PodStatusWire) -> Resources:
    """The requests of the pod whose spec stands at `path`, in the units of `Resources`, without `pods`."""
    total = _containers(report, path, spec, status)
    if spec.resources is not None:
        total |= _pod_level(report, f"{path}.resources", spec.resources, total)
    _add(total, read_resources(report, f"{path}.overhead", spec.overhead))
    return {name: min(amount, LARGEST_AMOUNT) for name, amount in total.items()}


def _containers(report: Report, path: str, spec: PodSpecWire, status: PodStatusWire) -> Resources:
    """Containers run beside all sidecars; before that, each init container beside the sidecars above it."""
    infeasible = any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in status.conditions)
    statuses = {s.name: s for s in (*status.container_statuses, *status.init_container_statuses)}
    total: Resources = {}
    for index, container in enumerate(spec.containers):
        where = f"{path}.containers[{index}].resources"
        _add(total, _running(report, where, container, statuses, infeasible))
    sidecars: Resources = {}
    peak: Resources = {}
    for index, container in enumerate(spec.init_containers):
        where = f"{path}.initContainers[{index}].resources"
        if container.restart_policy == "Always":
            own = _running(report, where, container, statuses, infeasible)
            _add(total, own)
            _add(sidecars, own)
            _raise(peak, sidecars)
        else:
            own = _given(report, where, container.resources)
            _add(own, sidecars)
            _raise(peak, own)
    _raise(total, peak)
    return total


def _running(
    report: Report,
    path: str,
    container: ContainerWire,
    statuses: Mapping[str, ContainerStatusWire],
    infeasible: bool,
) -> Resources:
    """A container's requests; while it is resized, the most of what is asked for, granted and in force.

    A resize that the node can never grant (`infeasible`) does not count.
    """
    own = _given(report, path, container.resources)
    status = statuses.get(container.name)
    if status is None or status.resources is None:
        return own
    if infeasible:
        own = {}
    where = f"status.containerStatuses[{container.name}]"
    _raise(own, read_resources(report, f"{where}.resources.requests", status.resources.requests))
    _raise(own, read_resources(report, f"{where}.allocatedResources", status.allocated_resources))
    return own


def _given(report: Report, path: str, resources: ResourcesWire | None) -> Resources:
    if resources is None:
        return {}
    limits = read_resources(report, f"{path}.limits", resources.limits)
    return limits | read_resources(report, f"{path}.requests", resources.requests)


def _pod_level(report: Report, path: str, resources: ResourcesWire, containers: Resources) -> Resources:
    """What pod-level resources put in the place of the containers' sum. A limit counts as a request for a
    resource that no container asks for."""
    requests = read_resources(report, f"{path}.requests", resources.requests)
    limits = read_resources(report, f"{path}.limits", resources.limits)
    defaulted = {name: amount for name, amount in limits.items() if name not in containers}
    return {name: amount for name, amount in (defaulted | requests).items() if _has_pod_level(name)}


def _has_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _add(total: Resources, more: Resources) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Resources, least: Resources) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)
