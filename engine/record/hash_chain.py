"""The hash chain over the encoded entries. It shows whether an entry was changed, removed or moved, and which one.

The chain's value at an entry is BLAKE2b of the value before it and the entry's bytes. MessagePack delimits itself, so
no two sequences of entries share a chain. A `Checkpoint` is a value with its position. Whoever keeps one outside of the
record can check later that the record up to there is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct

SIZE = 16
"""Bytes of a chain value."""


class Checkpoint(Struct, frozen=True):
    """The chain's value after the entry at `position`; position 0 is before the first."""

    position: int
    value: bytes


START = Checkpoint(0, bytes(SIZE))


def link(previous: bytes, encoded: bytes) -> bytes:
    """Returns the chain's value at an entry, from the value before it and the entry's bytes."""
    return blake2b(previous + encoded, digest_size=SIZE).digest()


def extend(start: Checkpoint, entries: Iterable[bytes]) -> Checkpoint:
    """Returns the checkpoint after these encoded entries, which follow `start` in order."""
    position, value = start.position, start.value
    for encoded in entries:
        position += 1
        value = blake2b(value + encoded, digest_size=SIZE).digest()
    return Checkpoint(position, value)
