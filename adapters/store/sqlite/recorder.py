"""`eventsourcing`'s SQLite recorder, extended to store the record's head and blobs in the events' transaction.

The recorder's table `stored_events` keeps its columns (stream, stream version, type, encoded entry; the rowid is the
position) and has the entry's chain value in a further column. One row of `record` is the head: format, record id, last
position with its chain value, and epoch, sealed by a hash of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import msgspec
from eventsourcing.persistence import InterfaceError, StoredEvent
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
)

from kerf.adapters.store.compression import LARGEST, pack
from kerf.adapters.store.record_head import EMPTY, Head, checked_head, follow
from kerf.adapters.store.retention.cut_tables import TABLES as CUT_TABLES

APPLICATION_ID = 0x4B455246  # "KERF", at offset 68 of the file

_TABLES = (
    # The head first, and then what says where the record begins: those pages are the last to go of a file that is cut
    # off.
    "CREATE TABLE IF NOT EXISTS record (one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER, id TEXT, "
    "position INTEGER, chain BLOB, epoch INTEGER, seal BLOB)",
    "CREATE TABLE IF NOT EXISTS stored_events (originator_id TEXT, originator_version INTEGER, topic TEXT, "
    "state BLOB, chain BLOB, PRIMARY KEY (originator_id, originator_version))",
    "CREATE TABLE IF NOT EXISTS blobs (digest TEXT PRIMARY KEY, packed INTEGER, size INTEGER, content BLOB)",
    "CREATE TABLE IF NOT EXISTS snapshots (schema TEXT, position INTEGER, digest TEXT, packed INTEGER, size INTEGER, "
    "state BLOB, hash TEXT, PRIMARY KEY (schema, position))",
)


_CAREFUL = ("trusted_schema = OFF", "cell_size_check = ON")
_STEPS = 100_000  # of SQLite's machine, some milliseconds


def _let_signals_in() -> int:
    """Goes on. Python handles signals before it: what Ctrl-C raises there ends the statement (SQLITE_INTERRUPT)."""
    return 0


class _Pool(SQLiteConnectionPool):
    def __init__(self, *, pragmas: Sequence[str], read_only: bool, **options: Any) -> None:
        super().__init__(**options)
        self._pragmas = pragmas
        # A reader must not try to change the journal mode; every record is in WAL mode from its creation.
        self.is_journal_mode_wal = read_only

    def _create_connection(self) -> SQLiteConnection:
        try:
            connection = super()._create_connection()
        except InterfaceError as error:  # the library's word for what SQLite said
            raise error.__cause__ if isinstance(error.__cause__, sqlite3.Error) else error from None
        try:
            with closing(connection.cursor().sqlite_cursor) as cursor:
                cursor.connection.set_progress_handler(_let_signals_in, _STEPS)
                cursor.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
                for pragma in (*_CAREFUL, *self._pragmas):
                    cursor.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection


class Datastore(SQLiteDatastore):
    """Connections to one file. `uri` is SQLite's file URI, `pragmas` are set on each connection."""

    def __init__(self, uri: str, *, pragmas: Sequence[str], read_only: bool) -> None:
        super().__init__(uri, originator_id_type="text")
        self.pool.close()
        self.pool = _Pool(pragmas=pragmas, read_only=read_only, db_name=uri)

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        """Opens a transaction as the library does, but takes the write lock at once.

        Rolls back if the commit itself fails (a full disk shows there), so that the connection returns clean to the
        pool.
        """
        # Without `is_writer`: the pool would never free its writer lock if opening a connection failed.
        connection = self.pool.get_connection()
        try:
            with closing(connection.cursor().sqlite_cursor) as cursor:
                cursor.execute("BEGIN IMMEDIATE" if commit else "BEGIN")
                yield SQLiteCursor(cursor)
                if commit:
                    connection.commit()
                else:
                    connection.rollback()
        except BaseException:
            with suppress(sqlite3.Error):
                connection.rollback()
            raise
        finally:
            self.pool.put_connection(connection)


class RecordRecorder(SQLiteApplicationRecorder):
    """Appends one turn: events, chain, blobs and the head together, or nothing."""

    def construct_create_table_statements(self) -> list[str]:
        head, *others = _TABLES
        begins, *kept = (table.format(bigint="INTEGER", blob="BLOB") for table in CUT_TABLES)
        return [head, begins, *others, *kept]

    def _create_table(self, c: SQLiteCursor) -> None:
        super()._create_table(c)
        c.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        write_head(c, EMPTY)

    def _insert_events(
        self,
        c: SQLiteCursor,
        stored_events: Sequence[StoredEvent],
        *,
        first: int = 0,
        epochs: tuple[int, int] = (0, 0),
        record_id: str = "",
        blobs: Sequence[tuple[str, bytes]] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Inserts a turn's events. The other arguments are those of `head.follow`."""
        head, rows = follow(read_head(c), stored_events, first=first, epochs=epochs, record_id=record_id)
        c.executemany(
            "INSERT INTO stored_events (rowid, originator_id, originator_version, topic, state, chain) "
            "VALUES (?,?,?,?,?,?)",
            rows,
        )
        c.executemany(
            "INSERT OR IGNORE INTO blobs VALUES (?,?,?,?)",
            [(digest, *_packed(content)) for digest, content in blobs],
        )
        write_head(c, head)
        return range(first, head.position + 1)


def _packed(content: bytes) -> tuple[int, int, bytes]:
    how, packed = pack(content)
    return how, len(content), packed


def write_head(c: SQLiteCursor, head: Head) -> None:
    c.execute("INSERT OR REPLACE INTO record VALUES (1,?,?,?,?,?,?)", (*msgspec.structs.astuple(head), head.seal()))


def read_head(c: SQLiteCursor) -> Head:
    """Reads the head. Raises `RecordCorrupt`."""
    c.execute("SELECT format, id, position, chain, epoch, seal FROM record")
    return checked_head(tuple(c.fetchone() or ()))
