"""Which snapshot a store gives: one that it keeps, or one that a reader keeps in memory and that is nearer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

Snapshot = tuple[int, bytes, str]
"""Position, encoded state, digest. Without a digest ("") it is of this process, and needs no check."""
Nearer = Callable[[int | None, str], Snapshot | None]
"""Takes what `Store.snapshot` takes. Returns the latest snapshot in memory."""


class SnapshotGiver(ABC):
    """`Store.snapshot`. Whoever asks many questions of one long record sets `nearer`."""

    nearer: Nearer | None = None

    @abstractmethod
    def kept_snapshot(self, until: int | None, schema: str, after: int = 0) -> Snapshot | None:
        """Returns the latest snapshot that the store keeps, up to a position, if it is after another one."""

    def snapshot(self, until: int | None, schema: str) -> Snapshot | None:
        """Returns what `Store.snapshot` does."""
        near = self.nearer(until, schema) if self.nearer is not None else None
        return self.kept_snapshot(until, schema, near[0] if near is not None else 0) or near
