"""Translates PostgreSQL's errors into the record's own."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from kerf.adapters.store.record_head import SALVAGE
from kerf.engine.record.errors import (
    NotARecord,
    RecordCorrupt,
    RecordExists,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StreamConflict,
)

FAULTS = (psycopg.Error,)  # PoolTimeout is one of them

_CREATE = "Make one by opening the URL for writing: kerf run does"
_KINDS: tuple[tuple[type[psycopg.Error], type[StoreError], str, str], ...] = (
    (errors.DiskFull, StoreFull, "no room is left for the record", "Free space on the database server's disk"),
    (
        errors.LockNotAvailable,
        StoreLocked,
        "the record is locked by another process",
        "Find the other writer and end one of the two",
    ),
    (errors.ReadOnlySqlTransaction, StoreReadOnly, "the database cannot be written", "Name the primary server"),
    (
        errors.InsufficientPrivilege,
        StoreReadOnly,
        "the user may not do this",
        "Grant the user the rights to the schema",
    ),
    (errors.UniqueViolation, StreamConflict, "a version of a stream is taken already", "Read the stream again"),
    (errors.DuplicateTable, RecordExists, "there is a record already", 'Open it with mode "write"'),
    (errors.UndefinedTable, NotARecord, "the schema holds no record", _CREATE),
    (errors.DataCorrupted, RecordCorrupt, "the record is damaged", SALVAGE),
    (errors.IndexCorrupted, RecordCorrupt, "the record is damaged", SALVAGE),
    (PoolTimeout, StoreError, "the database does not answer", "Check that the server runs and can be reached"),
    (psycopg.OperationalError, StoreError, "the database does not answer", "Check the server, the URL and the user"),
)


def translated(error: psycopg.Error, place: str, position: int = 0) -> StoreError:
    """Returns the record's error for psycopg's; the caller raises it from that. libpq's messages hold no password."""
    said = " ".join(str(error).split())
    for kind, own, message, hint in _KINDS:
        if isinstance(error, kind):
            return own(f"{message} ({said})", position=position, where=place, hint=hint)
    return StoreError(f"the database fails ({said})", position=position, where=place, hint="Look at the server's log")
