"""v1 PodTemplates, which CapacityBuffers name (L-59)."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.names import Digest, NamespaceName, PodTemplateName


class PodTemplate(Struct, frozen=True, omit_defaults=True):
    """A v1 PodTemplate. `shape` is the digest of its PodShape. `generation` counts its changes, 0 if unknown."""

    namespace: NamespaceName
    name: PodTemplateName
    shape: Digest
    generation: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
