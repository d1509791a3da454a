"""v1 PodTemplates (L-59), and the template of pods that stands in a workload."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.manifests.kubernetes.pods import read_template
from kerf.engine.model.manifests.kubernetes.pods_wire import PodSpecWire
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    ObjectWire,
    Read,
    Wire,
    identity,
)


class TemplateMetadataWire(Wire):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplateWire(Wire):
    metadata: TemplateMetadataWire = field(default_factory=TemplateMetadataWire)
    spec: PodSpecWire | None = None


class TemplateWire(ObjectWire):
    template: PodTemplateWire = field(default_factory=PodTemplateWire)


_read = msgspec.json.Decoder(TemplateWire).decode


def read_pod_template(data: bytes, report: Report) -> Read:
    """A v1 PodTemplate and the blob of its shape."""
    wire = _read(data)
    namespace, _ = identity(report, wire.metadata)
    digest, blobs = template_shape(report, "template", wire.template)
    return Read(PodTemplate(namespace, wire.metadata.name, digest, wire.metadata.generation), blobs)


def template_shape(report: Report, path: str, template: PodTemplateWire) -> tuple[str, dict[str, msgspec.Struct]]:
    """The digest and the blob of the shape of a pod template that stands at `path`."""
    if template.spec is None:
        report.add("KERF304", f"{path}.spec", "A workload needs a pod template")
        return "", {}
    digest, shape = read_template(report, f"{path}.spec", template.spec, template.metadata.labels)
    return digest, {digest: shape}
