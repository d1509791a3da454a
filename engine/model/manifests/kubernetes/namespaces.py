"""Namespaces."""

from __future__ import annotations

import msgspec

from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    ObjectWire,
    Read,
    require_name,
)

_read = msgspec.json.Decoder(ObjectWire).decode


def read_namespace(data: bytes, report: Report) -> Read:
    """A v1 Namespace."""
    wire = _read(data)
    require_name(report, wire.metadata)
    return Read(Namespace(wire.metadata.name, wire.metadata.labels), {})
