"""Services."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    ObjectWire,
    Read,
    Wire,
    identity,
)


class ServiceSpecWire(Wire):
    selector: dict[str, str] = {}


class ServiceWire(ObjectWire):
    spec: ServiceSpecWire = field(default_factory=ServiceSpecWire)


_read = msgspec.json.Decoder(ServiceWire).decode


def read_service(data: bytes, report: Report) -> Read:
    """A v1 Service: only which pods it is for."""
    wire = _read(data)
    namespace, _ = identity(report, wire.metadata)
    return Read(Service(namespace, wire.metadata.name, wire.spec.selector), {})
