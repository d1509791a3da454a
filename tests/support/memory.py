"""A Store in memory: for tests of what stands above the store. It keeps the store's promises but durability."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kerf.engine.record.base import Base, KeptHistory
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import (
    BlobCorrupt,
    BlobMissing,
    EpochRefused,
    PositionConflict,
    RecordCorrupt,
    StreamConflict,
)
from kerf.engine.record.store import Append


class MemoryStore:
    """`fail_with` is raised by the next appends until it is taken back."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.blobs: dict[str, bytes] = {}
        self.versions: dict[str, int] = {}
        self.snapshots_kept: dict[int, tuple[str, bytes, str]] = {}
        self.fail_with: Exception | None = None

    def append(self, turn: Append) -> None:
        if self.fail_with is not None:
            raise self.fail_with
        if turn.entries[0].epoch < self.epoch():
            raise EpochRefused("older epoch", position=turn.entries[0].position)
        if turn.entries[0].position != len(self.entries) + 1:
            raise PositionConflict("not the next position", position=turn.entries[0].position)
        versions = dict(self.versions)
        for entry in turn.entries:
            if entry.version <= versions.get(entry.stream, 0):
                raise StreamConflict("version taken", position=entry.position)
            versions[entry.stream] = entry.version
        self.entries.extend(turn.entries)
        self.blobs.update(turn.blobs)
        self.versions = versions

    def scan(self, after: int = 0, until: int | None = None, only: Collection[str] | None = None) -> Iterator[Entry]:
        yield from (entry for entry in self.entries[after:until] if only is None or entry.type in only)

    def base(self) -> Base | None:
        return None

    def kept(self) -> KeptHistory | None:
        return None

    def blob(self, digest: str) -> bytes:
        try:
            return self.blobs[digest]
        except KeyError:
            raise BlobMissing("no such blob", where=digest) from None

    def check(self) -> None:
        """Nothing is stored that could be damaged."""

    def last_position(self) -> int:
        return len(self.entries)

    def epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else 0

    def put_snapshot(self, position: int, schema: str, state: bytes, digest: str) -> None:
        self.snapshots_kept[position] = (schema, state, digest)

    def snapshot(self, until: int | None, schema: str) -> tuple[int, bytes, str] | None:
        usable = [p for p, (s, _, _) in self.snapshots_kept.items() if s == schema and (until is None or p <= until)]
        return (max(usable), *self.snapshots_kept[max(usable)][1:]) if usable else None

    def snapshots(self, schema: str) -> dict[int, str]:
        return {position: digest for position, (of, _, digest) in self.snapshots_kept.items() if of == schema}

    def close(self) -> None:
        """Nothing to close."""


class DamagedStore(MemoryStore):
    """The entries and blobs of another store, of which the entry at `position` cannot be read, or no blob can."""

    def __init__(self, store: MemoryStore, position: int = 0) -> None:
        super().__init__()
        self.entries, self.blobs = store.entries, store.blobs
        self._position = position

    def scan(self, after: int = 0, until: int | None = None, only: Collection[str] | None = None) -> Iterator[Entry]:
        for entry in super().scan(after, until, only):
            if entry.position == self._position:
                raise RecordCorrupt("bytes were changed", position=entry.position)
            yield entry

    def blob(self, digest: str) -> bytes:
        if not self._position:
            raise BlobCorrupt("another content", where=digest)
        return super().blob(digest)
