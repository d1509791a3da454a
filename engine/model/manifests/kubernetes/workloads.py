"""Deployments, ReplicaSets, StatefulSets and ReplicationControllers."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.kubernetes.pods import Selector, VolumeRef
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.model.manifests.kubernetes.pod_shapes import read_selector
from kerf.engine.model.manifests.kubernetes.pod_templates import PodTemplateWire, template_shape
from kerf.engine.model.manifests.kubernetes.pods_wire import ClaimTemplateSpecWire, LabelSelectorWire
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    Int32,
    MetadataWire,
    ObjectWire,
    Read,
    Wire,
    identity,
    read_time,
)


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


_read_workload = msgspec.json.Decoder(WorkloadWire).decode
_read_controller = msgspec.json.Decoder(ControllerWire).decode


def read_workload(data: bytes, report: Report) -> Read:
    """An apps/v1 Deployment, ReplicaSet or StatefulSet, and the blob of its template's shape."""
    wire = _read_workload(data)
    claims = tuple(
        VolumeRef(template.metadata.name, storage_class=template.spec.storage_class_name or "")
        for template in wire.spec.volume_claim_templates
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
