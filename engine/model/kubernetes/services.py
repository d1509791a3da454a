"""Services, as far as default topology spread needs them (S-151)."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.names import LabelMap, NamespaceName, ServiceName


class Service(Struct, frozen=True, omit_defaults=True):
    """A Service. `selector` is empty if the Service has none; such a Service selects no pod."""

    namespace: NamespaceName
    name: ServiceName
    selector: LabelMap = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
