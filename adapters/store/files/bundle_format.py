"""The format of a bundle (see `kerf.adapters.store.files.bundle`): its header, its frames, and their largest sizes."""

from __future__ import annotations

from msgspec import Struct

MAGIC = b"kerfb\x00"
WITHOUT_BASE, WITHOUT_SNAPSHOTS, FORMAT = 1, 2, 3
"""Format 1: a record from its beginning, or a part that cannot be decided again. Format 2: it begins with a base.
Format 3: it has snapshots of the state, with a base or without. An older kerf refuses a format that it does not know
(KERF110)."""
DIGEST_BYTES = 16
PREFIX = len(MAGIC) + 2 + 4
FRAME_ENTRIES = 4096
FRAME_BYTES = 1 << 20
SMALLEST = {"entries": 11, "history": 11, "blobs": 35}
"""A frame's items have at least so many bytes: a list with more of them is not unpacked."""
LONGEST_HEADER = 16 << 20
_TOTAL_SMALL, _TOTAL_RATIO = 64 << 20, 100
"""All frames together are small, or at most so many times as large as the file (bundles of 0.1.0: 17 times)."""


class BundleInfo(Struct, frozen=True, kw_only=True):
    """The header's description of a bundle. `created` is in milliseconds since the epoch.

    `chain_before` and `chain` are the chain's values (hex) before the first and after the last entry. `missing` counts
    the named blobs that the source did not have. `based`: the bundle begins with the state before its first entry, so
    that its entries can be decided again. `kept` counts the claim events and decisions from before that state.
    `unknown` counts the entries of a newer kerf; in a sanitised bundle nothing is left of what they say. There are so
    many `snapshots`, of the state's schema `schema`.
    """

    format: int
    record: str
    engine: str
    created: int
    first: int
    last: int
    epoch: int
    entries: int
    blobs: int
    missing: int
    chain_before: str
    chain: str
    sanitised: bool
    kept: int = 0
    based: bool = False
    unknown: int = 0
    snapshots: int = 0
    schema: str = ""


class Frame(Struct, frozen=True):
    kind: str  # "base", "history", "entries", "blobs" or "snapshot"
    length: int  # bytes in the file
    size: int  # bytes unpacked
    digest: str  # of the bytes in the file
    first: int = 0
    last: int = 0
    chain: str = ""  # after `last`; of a snapshot, the digest of the state there


class Header(Struct, frozen=True):
    info: BundleInfo
    frames: tuple[Frame, ...]


def most_in_all(length: int) -> int:
    """Returns how many bytes the frames of a file of this length may be together when they are unpacked."""
    return _TOTAL_SMALL + _TOTAL_RATIO * length


def items_of(content: bytes) -> int:
    """Returns how many items a MessagePack list has; 0 if it is none, which decoding will say."""
    first = content[:1]
    if b"\x90" <= first <= b"\x9f":
        return first[0] & 0x0F
    size = {b"\xdc": 2, b"\xdd": 4}.get(first, 0)
    return int.from_bytes(content[1 : 1 + size])
