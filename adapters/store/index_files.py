"""Keeps indexes of records in the user's cache folder, one file for each part of a record.

A file is named by what it was made of: the seals of the record at its beginning and its end (`ChainedStore.seal`,
`BundleStore.seal`). So that of another record, or of one that was changed, is not found. It is read only if its digest
is right. Nothing beside a record is written or read: whoever sends a record sends no index.
"""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from kerf.adapters.store.files.private_files import write_whole
from kerf.engine.errors import KerfError

_MAGIC = b"kerfnames\x00\x02" + sys.byteorder[:1].encode()
"""With the number of the format, and the order of bytes of this machine."""
_DIGEST, _LENGTH = 32, 8
_NAME = re.compile(r"(?P<after>[0-9]{1,18})-(?P<until>[0-9]{1,18})-(?P<seal>[0-9a-f]{32})\.names")
MOST_KEPT = 1 << 30
"""All files together have at most so many bytes; those that were written first go."""


class Sealed(Protocol):
    def seal(self, position: int) -> str: ...


class IndexFile(Struct, frozen=True):
    """A part of an index: two lists of numbers, and names, about the entries with after < position <= until."""

    after: int
    until: int
    named: memoryview  # of 64-bit numbers
    others: memoryview  # of 32-bit numbers
    names: bytes


def folder() -> Path:
    """Returns where indexes are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kerf" / "names"


def read_parts(record: Sealed, after: int, until: int) -> Iterator[IndexFile]:
    """Yields the parts of a record that are kept, one after the other from `after` on."""
    while (part := _longest(record, after, until)) is not None:
        yield part
        after = part.until


def _longest(record: Sealed, after: int, until: int) -> IndexFile | None:
    kept: list[tuple[int, Path]] = []
    with suppress(OSError):
        for path in (folder() / record.seal(after)).iterdir():
            found = _NAME.fullmatch(path.name)
            if (
                found is not None
                and int(found["after"]) == after
                and after < int(found["until"]) <= until
                and record.seal(int(found["until"])) == found["seal"]
            ):
                kept.append((int(found["until"]), path))
    parts = (_read(path, after, end) for end, path in sorted(kept, reverse=True))
    return next((part for part in parts if part is not None), None)


def _read(path: Path, after: int, until: int) -> IndexFile | None:
    """Returns what is in a file, None if it is damaged."""
    with suppress(OSError):
        data = path.read_bytes()
        digest, body = data[len(_MAGIC) : len(_MAGIC) + _DIGEST], memoryview(data)[len(_MAGIC) + _DIGEST :]
        if data.startswith(_MAGIC) and blake2b(body, digest_size=_DIGEST).digest() == digest:
            first = 2 * _LENGTH
            second = first + 8 * int.from_bytes(body[:_LENGTH])
            third = second + 4 * int.from_bytes(body[_LENGTH:first])
            named, others = body[first:second].cast("Q"), body[second:third].cast("I")
            return IndexFile(after, until, named, others, bytes(body[third:]))
    return None


def keep_part(record: Sealed, after: int, until: int, named: array[int], others: array[int], names: bytes) -> None:
    """Writes a part, if that can be: a cache that cannot be written is none. Removes the oldest ones if they get too
    many."""
    lengths = len(named).to_bytes(_LENGTH) + len(others).to_bytes(_LENGTH)
    body = lengths + named.tobytes() + others.tobytes() + names
    place = folder() / record.seal(after) / f"{after}-{until}-{record.seal(until)}.names"
    with suppress(OSError, KerfError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place, _MAGIC, blake2b(body, digest_size=_DIGEST).digest(), body, replace=True)
        _remove_oldest()


def _remove_oldest() -> None:
    files = sorted(((path.stat(), path) for path in folder().glob("*/*.names")), key=lambda found: -found[0].st_mtime)
    size = 0
    for status, path in files:
        size += status.st_size
        if size > MOST_KEPT:
            path.unlink(missing_ok=True)
