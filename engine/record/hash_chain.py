"""The hash chain over the encoded entries: a changed, missing or moved entry shows, and so does where.

The chain value of an entry is BLAKE2b of the value before it followed by the entry's bytes. MessagePack delimits
itself, so no two sequences of entries share a chain. A `Checkpoint` is a value with its position: who keeps one outside
of the record can tell whether the record up to there is still the same.
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
    """The chain value of an entry, from the value before it and the entry's bytes."""
    return blake2b(previous + encoded, digest_size=SIZE).digest()


def extend(start: Checkpoint, entries: Iterable[bytes]) -> Checkpoint:
    """The checkpoint after these encoded entries, which follow `start` in order."""
    position, value = start.position, start.value
    for encoded in entries:
        position += 1
        value = blake2b(value + encoded, digest_size=SIZE).digest()
    return Checkpoint(position, value)
