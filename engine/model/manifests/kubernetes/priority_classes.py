"""PriorityClasses."""

from __future__ import annotations

import msgspec

from kerf.engine.model.kubernetes.priority_classes import PriorityClass
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import Int32, ObjectWire, Read, require_name


class PriorityClassWire(ObjectWire):
    value: Int32 = 0
    global_default: bool = False


_read = msgspec.json.Decoder(PriorityClassWire).decode


def read_priority_class(data: bytes, report: Report) -> Read:
    """A scheduling.k8s.io/v1 PriorityClass."""
    wire = _read(data)
    require_name(report, wire.metadata)
    return Read(PriorityClass(wire.metadata.name, wire.value, wire.global_default), {})
