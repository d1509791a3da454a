"""The port for the store that keeps the record, as a Protocol. kerf.adapters.store implements it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from msgspec import Struct

from kerf.engine.record.base import Base, KeptHistory
from kerf.engine.record.entries import Entry


class Append(Struct, frozen=True):
    """One turn, ready to be stored: its entries in order, with positions, and the encoded blobs that they name."""

    entries: tuple[Entry, ...]
    blobs: dict[str, bytes]


class Store(Protocol):
    """Stores the record. tests/contract/store_contract.py holds the contract that every store must pass."""

    def append(self, turn: Append) -> None:
        """Stores the whole turn or nothing; it is durable when this returns.

        Raises `StoreError` (KERF1xx): conflict of position or stream version, an epoch older than the stored one, disk
        full, locked. After an error nothing of the turn is stored.
        """
        ...

    def scan(self, after: int = 0, until: int | None = None, only: Collection[str] | None = None) -> Iterator[Entry]:
        """Yields entries with after < position <= until, in order and decoded. Up to the base, only kept entries
        remain. `only` names the types to yield: decoding is most of the work (see `Codec.decode_all`).
        """
        ...

    def base(self) -> Base | None:
        """Returns the state that the record begins with; None if it begins at position 1."""
        ...

    def kept(self) -> KeptHistory | None:
        """Returns what a cut kept from before the base; None if the record was not cut or is a copy."""
        ...

    def blob(self, digest: str) -> bytes:
        """Returns the content of a blob. Raises `StoreError` if the store does not have it."""
        ...

    def check(self) -> None:
        """Checks all that is stored: the head, both ends, the chain, each blob. Raises `StoreError` at the first
        fault.
        """
        ...

    def last_position(self) -> int: ...

    def epoch(self) -> int: ...

    def put_snapshot(self, position: int, schema: str, state: bytes, digest: str) -> None:
        """Keeps a snapshot. Snapshots are a cache and may be dropped."""
        ...

    def snapshot(self, until: int | None, schema: str) -> tuple[int, bytes, str] | None:
        """Returns the latest snapshot of this schema at or before `until`: position, state, digest. Without a digest
        ("") it is of this process, and needs no check.
        """
        ...

    def snapshots(self, schema: str) -> dict[int, str]:
        """Returns the positions of all snapshots of this schema, each with the digest of the state that it claims to
        be.
        """
        ...

    def close(self) -> None: ...
