"""PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes and VolumeAttachments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import field

from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from kerf.engine.model.kubernetes.volumes import (
    EBS,
    IN_TREE,
    CSINode,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from kerf.engine.model.labels import REGION, ZONE
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import Int32, ObjectWire, Read, Wire, read_time, require_name

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
VOLUME_ZONES = (ZONE, REGION, "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
ZONES_DELIMITER = "__"


class ClaimSpecWire(Wire):
    volume_name: str = ""
    storage_class_name: str | None = None


class ClaimStatusWire(Wire):
    phase: str = ""


class ClaimWire(ObjectWire):
    spec: ClaimSpecWire = field(default_factory=ClaimSpecWire)
    status: ClaimStatusWire = field(default_factory=ClaimStatusWire)


class ExpressionWire(Wire):
    """Of a node selector, and, without an operator, of a StorageClass's topology."""

    key: str = ""
    operator: str = "In"
    values: list[str] | None = None


class TermWire(Wire):
    match_expressions: list[ExpressionWire] | None = None
    match_label_expressions: list[ExpressionWire] | None = None


class SelectorWire(Wire):
    node_selector_terms: list[TermWire] | None = None


class AffinityWire(Wire):
    required: SelectorWire | None = None


class DriverWire(Wire):
    driver: str = ""


class VolumeSpecWire(Wire):
    csi: DriverWire | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    local: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None
    node_affinity: AffinityWire | None = None


class VolumeWire(ObjectWire):
    spec: VolumeSpecWire = field(default_factory=VolumeSpecWire)


class StorageClassWire(ObjectWire):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TermWire] | None = None


class AllocatableWire(Wire):
    count: Int32 | None = None


class NodeDriverWire(Wire):
    name: str = ""
    allocatable: AllocatableWire | None = None


class CSINodeSpecWire(Wire):
    drivers: list[NodeDriverWire] | None = None


class CSINodeWire(ObjectWire):
    spec: CSINodeSpecWire = field(default_factory=CSINodeSpecWire)


class SourceWire(Wire):
    persistent_volume_name: str | None = None


class AttachmentSpecWire(Wire):
    node_name: str = ""
    source: SourceWire = field(default_factory=SourceWire)


class AttachmentWire(ObjectWire):
    spec: AttachmentSpecWire = field(default_factory=AttachmentSpecWire)


_read_claim = msgspec.json.Decoder(ClaimWire).decode
_read_volume = msgspec.json.Decoder(VolumeWire).decode
_read_class = msgspec.json.Decoder(StorageClassWire).decode
_read_csi_node = msgspec.json.Decoder(CSINodeWire).decode
_read_attachment = msgspec.json.Decoder(AttachmentWire).decode


def read_volume_claim(data: bytes, report: Report) -> Read:
    """A v1 PersistentVolumeClaim."""
    wire = _read_claim(data)
    metadata = wire.metadata
    require_name(report, metadata)
    claim = VolumeClaim(
        namespace=metadata.namespace or "default",
        name=metadata.name,
        volume=wire.spec.volume_name,
        storage_class=wire.spec.storage_class_name or "",
        phase=wire.status.phase or "Pending",
        bind_completed=BIND_COMPLETED in metadata.annotations,
        deleting=read_time(report, "metadata.deletionTimestamp", metadata.deletion_timestamp),
    )
    return Read(claim, {})


def read_volume(data: bytes, report: Report) -> Read:
    """A v1 PersistentVolume."""
    wire = _read_volume(data)
    spec, metadata = wire.spec, wire.metadata
    require_name(report, metadata)
    required = spec.node_affinity.required if spec.node_affinity is not None else None
    volume = Volume(
        name=metadata.name,
        driver=spec.csi.driver if spec.csi is not None else EBS if spec.aws_elastic_block_store is not None else "",
        terms=_within(selector_terms(required), metadata.labels),
        local=spec.local is not None or spec.host_path is not None,
        deleting=read_time(report, "metadata.deletionTimestamp", metadata.deletion_timestamp),
    )
    return Read(volume, {})


def read_storage_class(data: bytes, report: Report) -> Read:
    """A storage.k8s.io/v1 StorageClass."""
    wire = _read_class(data)
    require_name(report, wire.metadata)
    mode = wire.volume_binding_mode or "Immediate"  # the API's default
    report.one_of("volumeBindingMode", mode, BINDING_MODES)
    given = StorageClass(
        name=wire.metadata.name,
        driver=IN_TREE.get(wire.provisioner, wire.provisioner),
        immediate=mode == "Immediate",
        topologies=tuple(
            _term(allowed_topology.match_label_expressions) for allowed_topology in wire.allowed_topologies or ()
        ),
        default=wire.metadata.annotations.get(DEFAULT_CLASS) == "true",
    )
    return Read(given, {})


def read_csi_node(data: bytes, report: Report) -> Read:
    """A storage.k8s.io/v1 CSINode. S-159: no allocatable, no limit; allocatable without a count is 0."""
    wire = _read_csi_node(data)
    require_name(report, wire.metadata)
    limits = {driver.name: driver.allocatable.count or 0 for driver in wire.spec.drivers or () if driver.allocatable}
    return Read(CSINode(wire.metadata.name, dict(sorted(limits.items()))), {})


def read_attachment(data: bytes, report: Report) -> Read:
    """A storage.k8s.io/v1 VolumeAttachment."""
    wire = _read_attachment(data)
    metadata, spec = wire.metadata, wire.spec
    require_name(report, metadata)
    attachment = VolumeAttachment(
        name=metadata.name,
        node=spec.node_name,
        volume=spec.source.persistent_volume_name or "",
        deleting=read_time(report, "metadata.deletionTimestamp", metadata.deletion_timestamp),
    )
    return Read(attachment, {})


def _within(terms: tuple[NodeTerm, ...], labels: Mapping[str, str]) -> tuple[NodeTerm, ...]:
    """The terms of a volume with what its own labels say of zone and region, which kube-scheduler's VolumeZone holds
    nodes to; old volumes, and some that are made by hand, have nothing else. One label may name several zones."""
    own = tuple(
        Expression(key, "In", tuple(sorted(labels[key].split(ZONES_DELIMITER))))
        for key in VOLUME_ZONES
        if key in labels
    )
    if not own:
        return terms
    return tuple(NodeTerm((*term.expressions, *own)) for term in terms if term.expressions) or (NodeTerm(own),)


def selector_terms(wire: SelectorWire | None) -> tuple[NodeTerm, ...]:
    """The terms of a node selector, as far as they are about labels."""
    terms = (wire.node_selector_terms if wire is not None else None) or []
    return tuple(_term(term.match_expressions) for term in terms)


def _term(expressions: list[ExpressionWire] | None) -> NodeTerm:
    return NodeTerm(
        tuple(
            Expression(expression.key, expression.operator, tuple(expression.values or ()))
            for expression in expressions or ()
        )
    )
