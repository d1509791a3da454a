"""DaemonSets, Deployments, ReplicaSets, StatefulSets, ReplicationControllers, Services, PodDisruptionBudgets and
Namespaces."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.kubernetes.nodes import DaemonSet, Namespace, PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector, VolumeRef
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.model.manifests.kubernetes.pod_shapes import read_selector
from kerf.engine.model.manifests.kubernetes.pods import read_template
from kerf.engine.model.manifests.kubernetes.pods_wire import ClaimTemplateSpecWire, LabelSelectorWire, PodSpecWire
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import Int32, MetadataWire, ObjectWire, Read, Wire, read_time, require_name


class TemplateMetadataWire(Wire):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplateWire(Wire):
    metadata: TemplateMetadataWire = field(default_factory=TemplateMetadataWire)
    spec: PodSpecWire | None = None


class VolumeClaimTemplateWire(Wire):
    metadata: MetadataWire = field(default_factory=MetadataWire)
    spec: ClaimTemplateSpecWire = field(default_factory=ClaimTemplateSpecWire)


class WorkloadSpecWire(Wire):
    replicas: Int32 | None = None
    selector: LabelSelectorWire | None = None
    template: PodTemplateWire = field(default_factory=PodTemplateWire)
    volume_claim_templates: list[VolumeClaimTemplateWire] = []


class WorkloadWire(ObjectWire):
    spec: WorkloadSpecWire = field(default_factory=WorkloadSpecWire)


class ControllerSpecWire(Wire):
    """Of a ReplicationController, whose selector is a plain map."""

    replicas: Int32 | None = None
    selector: dict[str, str] = {}
    template: PodTemplateWire = field(default_factory=PodTemplateWire)


class ControllerWire(ObjectWire):
    spec: ControllerSpecWire = field(default_factory=ControllerSpecWire)


class ServiceSpecWire(Wire):
    selector: dict[str, str] = {}


class ServiceWire(ObjectWire):
    spec: ServiceSpecWire = field(default_factory=ServiceSpecWire)


class BudgetSpecWire(Wire):
    selector: LabelSelectorWire | None = None
    max_unavailable: str | Int32 | None = None
    min_available: str | Int32 | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatusWire(Wire):
    disruptions_allowed: Int32 = 0


class BudgetWire(ObjectWire):
    spec: BudgetSpecWire = field(default_factory=BudgetSpecWire)
    status: BudgetStatusWire = field(default_factory=BudgetStatusWire)


_read_workload = msgspec.json.Decoder(WorkloadWire).decode
_read_controller = msgspec.json.Decoder(ControllerWire).decode
_read_service = msgspec.json.Decoder(ServiceWire).decode
_read_budget = msgspec.json.Decoder(BudgetWire).decode
_read_object = msgspec.json.Decoder(ObjectWire).decode


def read_daemonset(data: bytes, report: Report) -> Read:
    """An apps/v1 DaemonSet and the blob of its template's shape (S-79)."""
    wire = _read_workload(data)
    namespace, uid = identity(report, wire.metadata)
    digest, blobs = template_shape(report, "spec.template", wire.spec.template)
    return Read(DaemonSet(uid, namespace, wire.metadata.name, digest), blobs)


def read_workload(data: bytes, report: Report) -> Read:
    """An apps/v1 Deployment, ReplicaSet or StatefulSet, and the blob of its template's shape."""
    wire = _read_workload(data)
    claims = tuple(
        VolumeRef(each.metadata.name, storage_class=each.spec.storage_class_name or "")
        for each in wire.spec.volume_claim_templates
    )
    return _workload(report, wire, read_selector(report, "spec.selector", wire.spec.selector), claims)


def read_replication_controller(data: bytes, report: Report) -> Read:
    """A v1 ReplicationController, and the blob of its template's shape."""
    wire = _read_controller(data)
    return _workload(report, wire, Selector(wire.spec.selector) if wire.spec.selector else None)


def _workload(
    report: Report,
    wire: WorkloadWire | ControllerWire,
    selector: Selector | None,
    volume_claims: tuple[VolumeRef, ...] = (),
) -> Read:
    namespace, uid = identity(report, wire.metadata)
    digest, blobs = template_shape(report, "spec.template", wire.spec.template)
    replicas = 1 if wire.spec.replicas is None else wire.spec.replicas  # the API's default
    if replicas < 0:
        report.add("KERF309", "spec.replicas", f"replicas is at least 0, not {replicas}")
    workload = Workload(
        kind=f"{wire.api_version}/{wire.kind}",
        namespace=namespace,
        name=wire.metadata.name,
        shape=digest,
        uid=uid,
        replicas=replicas,
        labels=wire.metadata.labels,
        template_labels=wire.spec.template.metadata.labels,
        template_annotations=wire.spec.template.metadata.annotations,
        created=read_time(report, "metadata.creationTimestamp", wire.metadata.creation_timestamp),
        selector=selector,
        volume_claims=volume_claims,
    )
    return Read(workload, blobs)


def read_service(data: bytes, report: Report) -> Read:
    """A v1 Service: only which pods it is for."""
    wire = _read_service(data)
    namespace, _ = identity(report, wire.metadata)
    return Read(Service(namespace, wire.metadata.name, wire.spec.selector), {})


def read_pod_disruption_budget(data: bytes, report: Report) -> Read:
    """A policy/v1 PodDisruptionBudget; integers of int-or-string fields become texts."""
    wire = _read_budget(data)
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
    )
    return Read(budget, {})


def read_namespace(data: bytes, report: Report) -> Read:
    """A v1 Namespace."""
    wire = _read_object(data)
    require_name(report, wire.metadata)
    return Read(Namespace(wire.metadata.name, wire.metadata.labels), {})


def identity(report: Report, metadata: MetadataWire) -> tuple[str, str]:
    """Namespace and uid. A manifest has no uid yet: namespace and name stand in, which are unique per kind
    too."""
    require_name(report, metadata)
    namespace = metadata.namespace or "default"
    return namespace, metadata.uid or f"{namespace}/{metadata.name}"


def template_shape(report: Report, path: str, template: PodTemplateWire) -> tuple[str, dict[str, msgspec.Struct]]:
    """The digest and the blob of the shape of a pod template that stands at `path`."""
    if template.spec is None:
        report.add("KERF304", f"{path}.spec", "A workload needs a pod template")
        return "", {}
    digest, shape = read_template(report, f"{path}.spec", template.spec, template.metadata.labels)
    return digest, {digest: shape}


def _check_bound(report: Report, path: str, value: str | int | None) -> None:
    if isinstance(value, int):
        if value < 0:
            report.add("KERF309", path, f"A number of pods is at least 0, not {value}")
    elif value is not None and not (value.endswith("%") and value[:-1].isascii() and value[:-1].isdigit()):
        report.add("KERF309", path, f"{value!r} is neither an integer nor a percentage", 'Write 1 or "50%"')
