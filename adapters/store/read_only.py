"""The base of the stores that can only be read, and the search for the blobs that an entry names."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, Protocol

import msgspec

from kerf.adapters.store.snapshots import Snapshot, SnapshotGiver
from kerf.engine.record.base import Base, KeptHistory
from kerf.engine.record.codec import Codec
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.entry_types import blob_of
from kerf.engine.record.errors import UNDECODABLE, StoreReadOnly
from kerf.engine.record.hash_chain import Checkpoint
from kerf.engine.record.observations import RecordStarted
from kerf.engine.record.store import Append

_DIGEST_LENGTH = 32
_AS_TEXT = re.compile(rb"\xd9\x20([0-9a-f]{32})")  # as MessagePack writes a text of that length


class Source(Protocol):
    """A record to export: every store of this package."""

    @property
    def record_id(self) -> str: ...
    def checkpoint(self, position: int) -> Checkpoint:
        """Returns the chain's value after `position`, or at the end of the record if that comes before."""
        ...

    def first_position(self) -> int: ...
    def base(self) -> Base | None: ...
    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the entries kept from before the base."""
        ...

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the entries from the base on."""
        ...

    def blob(self, digest: str) -> bytes: ...


class ReadOnlyStore(SnapshotGiver):
    """Refuses the writing half of `Store`, and builds `scan` on `encoded`."""

    _codec: Codec

    @abstractmethod
    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the stored bytes of the entries with after < position <= until, in order."""

    def base(self) -> Base | None:
        return None

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter(())

    def kept(self) -> KeptHistory | None:
        """Returns None: this is a copy, and no cut was made here."""
        return None

    @abstractmethod
    def check(self) -> None:
        """As `Store.check`."""

    def scan(self, after: int = 0, until: int | None = None, only: Collection[str] | None = None) -> Iterator[Entry]:
        yield from self._codec.decode_all(self.history(after, until), only)
        yield from self._codec.decode_all(self.encoded(after, until), only)

    def append(self, turn: Append) -> None:
        raise StoreReadOnly("this form of a record can only be read", hint="Append to a .kerf file")

    def put_snapshot(self, position: int, schema: str, state: bytes, digest: str) -> None:
        raise StoreReadOnly("this form of a record keeps no snapshots")

    def snapshots(self, schema: str) -> dict[int, str]:
        return {}

    def kept_snapshot(self, until: int | None, schema: str, after: int = 0) -> Snapshot | None:
        return None

    def close(self) -> None:
        """Does nothing: no file stays open between calls."""
        return


def started_as(first: Entry) -> str:
    """Returns the id of the record that begins with this entry; empty if the entry holds none."""
    return first.payload.record if isinstance(first.payload, RecordStarted) else ""


def blobs_of(entry: Entry) -> list[str]:
    """Returns the digests of the blobs that an entry names. For an entry of an unknown type, all texts that look like
    digests.
    """
    if isinstance(entry.payload, UnknownEntry):
        try:
            plain = msgspec.msgpack.decode(entry.payload.raw)
        except UNDECODABLE:
            return []
        return [text for text in _strings(plain) if _is_digest(text)]
    digest = blob_of(entry.payload)
    return [digest] if digest else []


def blobs_of_base(base: Base) -> list[str]:
    """Returns the digests of the blobs that a base may name: all texts that look like digests, without decoding the
    base.
    """
    return sorted({found.decode() for found in _AS_TEXT.findall(base.state)})


def _is_digest(text: str) -> bool:
    return len(text) == _DIGEST_LENGTH and all(c in "0123456789abcdef" for c in text)


def _strings(plain: Any) -> Iterator[str]:
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, dict | list):
        for part in plain.values() if isinstance(plain, dict) else plain:
            yield from _strings(part)
