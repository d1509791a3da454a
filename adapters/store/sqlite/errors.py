"""Translates the errors of SQLite and of the file system into the record's own."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventsourcing.persistence import ConnectionUnavailableError

from kerf.adapters.store.record_head import SALVAGE
from kerf.engine.record.errors import (
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StreamConflict,
)

# UnicodeDecodeError: Python's sqlite3 fails so when SQLite quotes damaged text in an error message.
FAULTS = (sqlite3.Error, ConnectionUnavailableError, UnicodeDecodeError)

_SECOND_WRITER = "Find the other writer and end one of the two"
_AGAIN = "Read the stream again, and decide again"
_PERMISSIONS = "Check the disk, and the permissions of the file and of its folder"
_ROOM = "Free space on its disk; a controller then goes on by itself, a command is to be run again"
_FORMS = "Give a file made by kerf (.kerf, .kerfb), or a golden folder"

# Primary result code (the low byte of the extended one) → error, message, hint.
_KINDS: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_FULL: (StoreFull, "no room is left for the record", _ROOM),
    sqlite3.SQLITE_BUSY: (StoreLocked, "the record is locked by another process", _SECOND_WRITER),
    sqlite3.SQLITE_LOCKED: (StoreLocked, "the record is locked", _SECOND_WRITER),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "the record cannot be written", _PERMISSIONS),
    sqlite3.SQLITE_NOTADB: (NotARecord, "the file is not a record", _FORMS),
    sqlite3.SQLITE_CORRUPT: (RecordCorrupt, "the record is damaged", SALVAGE),
    sqlite3.SQLITE_CONSTRAINT: (StreamConflict, "a version of a stream is taken already", _AGAIN),
}
_SYSTEM: dict[int, tuple[type[StoreError], str]] = {
    errno.ENOSPC: (StoreFull, "Free space on its disk, and try again"),
    errno.EDQUOT: (StoreFull, "Free space on its disk, and try again"),
    errno.EROFS: (StoreReadOnly, "Give a place that can be written"),
    errno.EACCES: (StoreReadOnly, "Give a place that can be written"),
    errno.EPERM: (StoreReadOnly, "Give a place that can be written"),
    errno.ENOENT: (RecordNotFound, "Make the folder first, or give another one"),
    errno.EEXIST: (RecordExists, "Give another name"),
}
_SIGNS_OF_DAMAGE = ("malformed", "decode", "unsupported file format", "no such table", "no such column")
_OTHER = (StoreError, "the record's file fails", _PERMISSIONS)


def translated(error: Exception, path: Path, position: int = 0) -> StoreError:
    """Returns the record's error for SQLite's; the caller raises it from that."""
    if isinstance(error, ConnectionUnavailableError):
        return StoreLocked("no connection to the record became free", where=str(path), hint="Close scans that are open")
    # What Python's sqlite3 raises by itself carries no code: text that is not UTF-8 was stored by nobody.
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_INTERRUPT:  # Ctrl-C came while SQLite worked; see recorder._let_signals_in
        raise KeyboardInterrupt from error
    if any(sign in str(error) for sign in _SIGNS_OF_DAMAGE):
        code = sqlite3.SQLITE_CORRUPT
    kind, message, hint = _KINDS.get(code & 0xFF, _OTHER)
    return kind(f"{message} ({error})", position=position, where=str(path), hint=hint)


@contextmanager
def refused_by_system(path: Path) -> Iterator[None]:
    """Translates an OSError raised while something is written at `path` into the record's own error."""
    try:
        yield
    except OSError as error:
        kind, hint = _SYSTEM.get(error.errno or 0, (StoreError, "Check the path, the disk and the permissions"))
        raise kind(f"it cannot be written: {error.strerror}", where=str(path), hint=hint) from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Translates an OSError raised while something is read at `path` into the record's own error."""
    try:
        yield
    except FileNotFoundError as error:
        raise RecordNotFound("there is no such file or folder", where=str(path), hint="Check the path") from error
    except OSError as error:
        hint = "Check the path, the disk and the permissions"
        raise StoreError(f"it cannot be read: {error.strerror}", where=str(path), hint=hint) from error
