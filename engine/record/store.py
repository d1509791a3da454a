"""What the engine asks of the store that keeps the record, as a Protocol. kerf.adapters.store implements it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from kerf.engine.record.base import Base, KeptHistory
from kerf.engine.record.entries import Entry


class Append(Struct, frozen=True):
    """One turn, ready to be stored: entries in order (positions assigned) and the encoded blobs they name."""

    entries: tuple[Entry, ...]
    blobs: dict[str, bytes]


class Store(Protocol):
    """The record's storage. Its contract is tests/contract/store_contract.py."""

    def append(self, turn: Append) -> None:
        """All or nothing, durable on return.

        Raises `StoreError` (KERF1xx): conflict of position or stream version, an epoch older than the stored one, disk
        full, locked. After an error nothing of the turn is stored.
        """
        ...

    def scan(self, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Entries with after < position <= until, in order, decoded. Up to the base these are only what is kept."""
        ...

    def base(self) -> Base | None:
        """The state that the record begins with, where it does not begin at position 1."""
        ...

    def kept(self) -> KeptHistory | None:
        """What is kept of the time before the base of a record that was cut; None for any other, and for a copy."""
        ...

    def blob(self, digest: str) -> bytes:
        """The content of a blob. Raises `StoreError` if it is not there."""
        ...

    def last_position(self) -> int: ...

    def epoch(self) -> int: ...

    def put_snapshot(self, position: int, schema: str, state: bytes, digest: str) -> None:
        """Keep a snapshot (a cache, never the truth)."""
        ...

    def snapshot(self, until: int | None, schema: str) -> tuple[int, bytes, str] | None:
        """The latest snapshot of this schema at or before `until`: position, state, digest."""
        ...

    def close(self) -> None: ...
