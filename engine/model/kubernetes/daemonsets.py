"""DaemonSets, whose pods take room on every node (S-79)."""

from __future__ import annotations

from msgspec import Struct


class DaemonSet(Struct, frozen=True, omit_defaults=True):
    uid: str
    namespace: str
    name: str
    shape: str  # digest of the PodShape of its template
