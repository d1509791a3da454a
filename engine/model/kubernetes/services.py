"""Services, as far as default topology spread looks at them (S-151)."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.names import LabelMap, NamespaceName, ServiceName


class Service(Struct, frozen=True, omit_defaults=True):
    """`selector` is empty for a Service that has none: neither selects any pod."""

    namespace: NamespaceName
    name: ServiceName
    selector: LabelMap = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
