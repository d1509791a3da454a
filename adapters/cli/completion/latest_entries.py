"""The latest entries of a record, undecoded: a key press waits for them, and the decoders take longer to import than to
use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from kerf.adapters.store.files.bundle_format import LONGEST_HEADER, MAGIC, PREFIX, Header

MAX_ENTRIES = 5_000
"""So many of the latest entries are read. An older name can be typed."""
_GOLDEN = ("record.jsonl", "decisions.jsonl")
_LATEST = "SELECT state FROM stored_events ORDER BY rowid DESC LIMIT ?"
_WIDE = "$wide"
"""What wraps a map in a golden folder (kerf.adapters.store.files.golden)."""
_TYPE, _AT = 4, 6
"""Places in an entry's envelope (kerf.engine.record.codec)."""


class Raw(Struct, frozen=True):
    """An entry: its type, position, time (ms since the epoch, or RFC 3339) and payload."""

    type: str
    position: int
    at: int | str
    payload: dict[str, Any]


def latest_entries(record: str) -> Iterator[Raw]:
    """Yields the latest entries of a file or folder, the last one first. Raises what reading it does."""
    path = Path(record.removeprefix("sqlite://"))
    if path.is_dir():
        return islice(_of_golden(path), MAX_ENTRIES)
    with path.open("rb") as file:
        bundled = file.read(len(MAGIC)) == MAGIC
    return islice(_of_bundle(path) if bundled else _of_sqlite(path), MAX_ENTRIES)


def _of_sqlite(path: Path) -> Iterator[Raw]:
    """A file that nobody has open is taken as one that does not change: SQLite leaves no files beside it then."""
    query = "mode=ro" if Path(f"{path}-wal").exists() else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?{query}", uri=True)) as database:
        for (encoded,) in database.execute(_LATEST, [MAX_ENTRIES]):
            yield _raw(encoded)


def _of_bundle(path: Path) -> Iterator[Raw]:
    from kerf.adapters.store.compression import ZSTD, unpack

    with path.open("rb") as file:
        length = int.from_bytes(file.read(PREFIX)[-4:])
        header = msgspec.json.decode(file.read(min(length, LONGEST_HEADER)), type=Header)
        ends = file.tell() + 16  # the digest of the header
        places = []
        for frame in header.frames:
            places.append((frame, ends))
            ends += frame.length
        for frame, begins in reversed(places):
            if frame.kind == "entries":
                file.seek(begins)
                content = unpack(ZSTD, frame.size, file.read(frame.length))
                for encoded in reversed(msgspec.msgpack.decode(content, type=list[msgspec.Raw])):
                    yield _raw(bytes(encoded))


def _of_golden(folder: Path) -> Iterator[Raw]:
    lines = [line for name in _GOLDEN for line in (folder / name).read_bytes().splitlines()[-MAX_ENTRIES:]]
    entries = sorted(map(msgspec.json.Decoder(Raw).decode, lines), key=lambda entry: -entry.position)
    for entry in entries:
        yield Raw(entry.type, entry.position, entry.at, entry.payload.get(_WIDE, entry.payload))


def _raw(encoded: bytes) -> Raw:
    entry = msgspec.msgpack.decode(encoded)
    return Raw(entry[_TYPE], entry[0], entry[_AT], entry[-1])
