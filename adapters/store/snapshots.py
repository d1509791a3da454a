"""Which snapshot a store gives: one that it keeps, or one that a reader keeps in memory and that is nearer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

Snapshot = tuple[int, bytes, str]
"""Position, encoded state, digest."""
Nearer = Callable[[int | None, str, Snapshot | None], Snapshot | None]
"""Takes what `Store.snapshot` takes, and the snapshot that the store keeps. Returns that one or a nearer one."""


class SnapshotGiver(ABC):
    """`Store.snapshot`. Whoever asks many questions of one long record sets `nearer`."""

    nearer: Nearer | None = None

    @abstractmethod
    def kept_snapshot(self, until: int | None, schema: str) -> Snapshot | None:
        """Returns the latest snapshot that the store keeps, up to a position."""

    def snapshot(self, until: int | None, schema: str) -> Snapshot | None:
        """Returns what `Store.snapshot` does."""
        kept = self.kept_snapshot(until, schema)
        return kept if self.nearer is None else self.nearer(until, schema, kept)
