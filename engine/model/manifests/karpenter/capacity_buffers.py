"""CapacityBuffers (autoscaling.x-k8s.io): L-57."""

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.crds.check import check_document
from kerf.engine.model.crds.feature_gated import CAPACITY_BUFFER
from kerf.engine.model.karpenter.capacity_buffers import ACTIVE, CapacityBuffer
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import Int32, ObjectWire, Quantities, Read, Wire, identity, read_resources


class TemplateRefWire(Wire):
    name: str = ""


class ScalableRefWire(Wire):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class BufferSpecWire(Wire):
    provisioning_strategy: str | None = None
    pod_template_ref: TemplateRefWire | None = None
    scalable_ref: ScalableRefWire | None = None
    replicas: Int32 | None = None
    percentage: Int32 | None = None
    limits: Quantities | None = None


class BufferWire(ObjectWire):
    spec: BufferSpecWire = field(default_factory=BufferSpecWire)


_read_buffer = msgspec.json.Decoder(BufferWire).decode


def read_capacity_buffer(data: bytes, report: Report) -> Read:
    """An autoscaling.x-k8s.io CapacityBuffer."""
    wire = _read_buffer(data)
    namespace, uid = identity(report, wire.metadata)
    check_document(CAPACITY_BUFFER, msgspec.json.decode(data), report)
    spec, template, scalable = wire.spec, wire.spec.pod_template_ref, wire.spec.scalable_ref
    buffer = CapacityBuffer(
        uid=uid,
        namespace=namespace,
        name=wire.metadata.name,
        template=template.name if template is not None else "",
        kind=f"{scalable.api_group or 'apps'}/v1/{scalable.kind}" if scalable is not None else "",
        workload=scalable.name if scalable is not None else "",
        replicas=spec.replicas,
        percentage=spec.percentage,
        limits=None if spec.limits is None else read_resources(report, "spec.limits", spec.limits),
        strategy=spec.provisioning_strategy or ACTIVE,
        generation=wire.metadata.generation,
    )
    return Read(buffer, {})
