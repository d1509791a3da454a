"""DaemonSets, whose pods take room on every node (S-79)."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.names import Digest, NamespaceName, Plain, WorkloadName


class DaemonSet(Struct, frozen=True, omit_defaults=True):
    uid: Plain
    namespace: NamespaceName
    name: WorkloadName
    shape: Digest  # digest of the PodShape of its template
