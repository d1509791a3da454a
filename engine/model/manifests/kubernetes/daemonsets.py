"""DaemonSets (apps/v1)."""

from __future__ import annotations

import msgspec

from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.manifests.kubernetes.pod_templates import template_shape
from kerf.engine.model.manifests.kubernetes.workloads import WorkloadWire
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    Read,
    identity,
)

_read = msgspec.json.Decoder(WorkloadWire).decode


def read_daemonset(data: bytes, report: Report) -> Read:
    """An apps/v1 DaemonSet and the blob of its template's shape (S-79)."""
    wire = _read(data)
    namespace, uid = identity(report, wire.metadata)
    digest, blobs = template_shape(report, "spec.template", wire.spec.template)
    return Read(DaemonSet(uid, namespace, wire.metadata.name, digest), blobs)
