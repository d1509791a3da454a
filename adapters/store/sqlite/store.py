"""The record in one SQLite file (.kerf): one writer, any number of readers.

The writer's connection is in WAL mode with synchronous=FULL, so a turn survives a power cut once `append` has returned.
A reader opens the file read-only, even from read-only media, and never changes it. Every scan checks the hash chain. A
damaged file is readable up to the damage, and the error says where that is.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteCursor

from kerf.adapters.store.chained import BYTES_PER_PAGE, ChainedStore, ChainRow, Mode, SnapshotRow, crowded
from kerf.adapters.store.files.private_files import make_empty, regular_file
from kerf.adapters.store.record_head import Head
from kerf.adapters.store.sqlite.errors import FAULTS, translated
from kerf.adapters.store.sqlite.recorder import Datastore, RecordRecorder, read_head
from kerf.adapters.store.transaction import Session
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.errors import (
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreLocked,
    StoreReadOnly,
)

LOG_BYTES = 64 << 20
"""SQLite truncates the write-ahead log to this size."""
_PAGES = ("page_count", "freelist_count", "page_size")
_STEP_PAGES = 250


class _SQLiteSession:
    def __init__(self, cursor: SQLiteCursor) -> None:
        self._cursor = cursor.sqlite_cursor
        self._cursor.row_factory = None

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._cursor.execute(_told(statement), values).fetchall()

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(_told(statement), rows)


_COLUMN = r"\w+ (INTEGER|TEXT|BLOB)( PRIMARY KEY)?( CHECK \(one = 1\))?"
_TABLE = re.compile(rf"CREATE TABLE \w+ \({_COLUMN}(, {_COLUMN})*(, PRIMARY KEY \(\w+(, \w+)*\))?\)", re.ASCII)


def _is_ours(kind: str, sql: str | None) -> bool:
    """Whether a record may have this: a plain table, or the index of its key.

    Views, triggers, virtual tables, computed columns and indexes of expressions run code of whoever made the file.
    """
    return kind == "index" if sql is None else kind == "table" and _TABLE.fullmatch(sql) is not None


def _not_ours(name: str, path: Path) -> NotARecord:
    what = f"this SQLite file is not a record: {name!r} is no table as kerf makes it"
    return NotARecord(what, where=str(path), hint="Ask for a bundle of the record (kerf bundle export)")


def _told(statement: str) -> str:
    return statement.format(position="rowid", blob="BLOB", bigint="INTEGER")


class SQLiteStore(ChainedStore):
    """`kerf.engine.record.store.Store` on a file. `mode`: "create" a new record, "write" or "read" an existing one.

    `lock_timeout` is how long a write waits for another process's lock, in milliseconds. Without `durable`, turns are
    stored and not forced to the disk: for a file that nobody sees before it is whole. Opening raises
    `RecordNotFound`, `RecordExists`, `NotARecord`, `FormatUnsupported`, `RecordCorrupt` or another `StoreError`.
    """

    def __init__(
        self, path: str | Path, mode: Mode, *, lock_timeout: int = 5_000, codec: Codec = CODEC, durable: bool = True
    ) -> None:
        self.path, self.place = Path(path), str(path)
        self.mode = mode
        self._codec = codec
        self._lock_timeout = lock_timeout
        self._tidy, self._durable = False, durable
        if mode != "create" and not self.path.is_file():
            raise RecordNotFound("there is no such file", where=str(path), hint="Check the path of the record")
        self._datastore = self._open_for_reading() if mode == "read" else self._open_for_writing()
        self._recorder = RecordRecorder(self._datastore)
        try:
            if mode == "create":
                self._create()
            self._check()
        except BaseException:
            self.close()
            raise

    # ── opening ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _uri(self, query: str) -> str:
        return f"file:{quote(str(self.path.absolute()))}?{query}"

    def _log(self) -> Path:
        """Returns the path of SQLite's write-ahead log, which exists while a connection is open, and after a crash."""
        return Path(f"{self.path}-wal")

    def _open_for_writing(self) -> Datastore:
        found = regular_file(self.path) if self.mode == "create" else None
        if self.mode == "write" or (found is not None and found.st_size):
            self._look_first()
        if self.mode == "create":
            if not (found is not None and found.st_size):
                make_empty(self.path)
            self._let_it_shrink()
        pragmas = (
            f"synchronous = {'FULL' if self._durable else 'OFF'}", f"busy_timeout = {self._lock_timeout}",
            f"journal_size_limit = {LOG_BYTES}",
        )  # fmt: skip
        return Datastore(self._uri("mode=rw"), pragmas=pragmas, read_only=False)

    def _let_it_shrink(self) -> None:
        """Enables auto-vacuum, so that the file can shrink later. SQLite accepts it only before anything is in the
        file.
        """
        try:
            with closing(sqlite3.connect(self._uri("mode=rw"), uri=True)) as connection:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("PRAGMA journal_mode = WAL")
        except FAULTS as error:
            raise translated(error, self.path) from error

    def _look_first(self) -> None:
        """Checks a file without changing it: opening for writing would put any database into WAL mode."""
        tidy = not self._log().exists()
        self._datastore = self._reader("mode=ro", salvage=False)
        try:
            if self.mode == "write":
                self._check()
            else:
                with self._transaction(commit=False) as c:
                    self._refuse_tables(c)
        finally:
            self._datastore.close()
            if tidy:
                self._remove_empty_log()

    def _open_for_reading(self) -> Datastore:
        """Opens the file read-only.

        SQLite needs files beside a record in WAL mode. Where the folder cannot be written, nobody else can write there
        either, so the file is opened as immutable. A truncated file is opened too.
        """
        self._tidy = not self._log().exists()
        unmerged = not self._tidy and self._log().stat().st_size > 0
        query, salvage = "mode=ro", False
        while True:
            datastore = self._reader(query, salvage=salvage)
            try:
                with datastore.transaction(commit=False) as c:
                    c.execute("SELECT 1 FROM sqlite_master LIMIT 1")
                return datastore
            except FAULTS as error:
                datastore.close()
                found = translated(error, self.path)
                if isinstance(found, RecordCorrupt) and not salvage:
                    salvage = True
                elif "immutable" not in query and not isinstance(found, NotARecord | RecordCorrupt | StoreLocked):
                    if unmerged:
                        raise StoreReadOnly(
                            "the record lies on read-only media together with a log that is not merged into it yet",
                            where=str(self.path),
                            hint="Copy the file and the one ending in -wal to a folder that can be written",
                        ) from error
                    query = "mode=ro&immutable=1"
                else:
                    raise found from error

    def _reader(self, query: str, *, salvage: bool) -> Datastore:
        pragmas = ["query_only = ON", f"busy_timeout = {self._lock_timeout}"]
        # SQLite refuses a file that is shorter than its header says, unless its schema is being repaired.
        pragmas += ["writable_schema = ON"] if salvage else []
        return Datastore(self._uri(query), pragmas=pragmas, read_only=True)

    def _create(self) -> None:
        """Makes the tables in one transaction. A file that a crash left half made can be created again."""
        with self._transaction(commit=True) as c:
            self._refuse_tables(c)
            self._recorder._create_table(c)

    def _refuse_tables(self, c: SQLiteCursor) -> None:
        c.execute("SELECT 1 FROM sqlite_master LIMIT 1")
        if c.fetchone():
            raise RecordExists("there is a database already", where=str(self.path), hint='Open it with mode "write"')

    def _check(self) -> None:
        with self._transaction(commit=False) as c:
            c.sqlite_cursor.row_factory = None
            c.execute("SELECT type, name, CAST(sql AS TEXT) FROM sqlite_master LIMIT 100")
            strange = [name for kind, name, sql in c.fetchall() if not _is_ours(kind, sql)]
            if "record" in strange:
                raise _not_ours("record", self.path)
            c.execute("SELECT 1 FROM sqlite_master WHERE name = 'record'")
            if c.fetchone() is None:
                raise NotARecord("this SQLite file is not a record", where=str(self.path), hint="Check the path")
            c.execute("SELECT format FROM record LIMIT 1")
            row = c.fetchone()
            self._check_format(row and row[0])
            for name in strange:
                raise _not_ours(name, self.path)
        if self.mode != "read":
            head = self.head()
            self._chain_at(head.position, head, self.cut())

    # ── ChainedStore ───────────────────────────────────────────────────────────────────────────────────────────────

    def head(self) -> Head:
        with self._transaction(commit=False) as c:
            return read_head(c)

    def _store(
        self,
        events: Sequence[StoredEvent],
        blobs: Sequence[tuple[str, bytes]],
        *,
        first: int,
        epochs: tuple[int, int],
        record_id: str,
    ) -> None:
        try:
            self._recorder.insert_events(events, first=first, epochs=epochs, record_id=record_id, blobs=blobs)
        except FAULTS as error:
            raise translated(error, self.path, first) from error

    def _rows(self, after: int, until: int) -> tuple[list[ChainRow], Exception | None]:
        rows: list[ChainRow] = []
        try:
            with self._datastore.transaction(commit=False) as c:
                cursor = c.sqlite_cursor
                cursor.row_factory = None
                cursor.execute(
                    # The casts: damage may have changed a value's type, which must show as another chain value.
                    "SELECT rowid, coalesce(CAST(state AS BLOB), x''), CAST(chain AS BLOB) FROM stored_events "
                    # The limit: a damaged page behind the range may answer as if it lay within.
                    "WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?",
                    (after, until, until - after),
                )
                size = 0
                for row in cursor:
                    rows.append(row)
                    size += len(row[1])
                    if size > BYTES_PER_PAGE:
                        break
        except FAULTS as error:
            fault = translated(error, self.path, after + len(rows) + 1)
            if not isinstance(fault, RecordCorrupt):
                raise fault from error
            return rows, error
        return rows, None

    def _chain_value(self, position: int) -> bytes | None:
        row = self._one("SELECT chain FROM stored_events WHERE rowid = ?", position)
        return None if row is None else row[0]

    def _position_of(self, stream: str, version: int) -> int | None:
        row = self._one(
            "SELECT rowid FROM stored_events WHERE originator_id = ? AND originator_version = ?", stream, version
        )
        return None if row is None else row[0]

    def _blob_row(self, digest: str) -> Sequence[Any] | None:
        return self._one("SELECT packed, size, content FROM blobs WHERE digest = ?", digest)

    def _one(self, statement: str, *values: str | int) -> Sequence[Any] | None:
        with self._transaction(commit=False) as c:
            c.execute(statement, values)
            row = c.fetchone()
        return None if row is None else tuple(row)

    def _snapshot_rows(self, until: int | None, schema: str) -> Iterator[SnapshotRow]:
        with self._transaction(commit=False) as c:
            c.execute(
                "SELECT position, digest, hash, packed, size, state FROM snapshots "
                "WHERE schema = ? AND position <= ? ORDER BY position DESC",
                (schema, read_head(c).position if until is None else until),
            )
            c.sqlite_cursor.row_factory = None
            yield from c.sqlite_cursor

    def _keep_snapshot(self, schema: str, row: SnapshotRow) -> None:
        position, digest, seal, how, size, packed = row
        with self._transaction(commit=True) as c:
            c.execute("DELETE FROM snapshots WHERE schema <> ?", (schema,))
            c.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?,?,?,?,?,?,?)",
                (schema, position, digest, how, size, packed, seal),
            )
            c.execute("SELECT position FROM snapshots", ())
            dropped = [(at,) for at in crowded(found["position"] for found in c.fetchall())]
            c.executemany("DELETE FROM snapshots WHERE position = ?", dropped)

    @contextmanager
    def session(self, *, commit: bool = False) -> Iterator[Session]:
        with self._transaction(commit=commit) as c:
            yield _SQLiteSession(c)

    def _has_cut(self, session: Session) -> bool:
        return bool(session.run("SELECT 1 FROM sqlite_master WHERE name = 'cut'"))

    def size(self, entries: int) -> int:
        with self.session() as session:
            pages, unused, size = (session.run(f"PRAGMA {pragma}")[0][0] for pragma in _PAGES)
        return int((pages - unused) * size)

    def give_back(self) -> Iterator[None]:
        """Moves unused pages to the end of the file and truncates it. A file of an older kerf cannot shrink; it uses
        them again.
        """
        with self.session() as session:
            shrinks = session.run("PRAGMA auto_vacuum")[0][0] != 0
        while shrinks:
            with self.session(commit=True) as session:
                left: int = session.run("PRAGMA freelist_count")[0][0]
                for _ in range(min(left, _STEP_PAGES)):  # Python's sqlite3 has this pragma free one page a call
                    session.run("PRAGMA incremental_vacuum(1)")
            if not left:
                return
            yield

    def rebuild(self) -> None:
        """Rewrites the whole file, so that one of an older kerf shrinks now and can shrink later.

        Needs as much free room as the record takes, and locks writers out meanwhile.
        """
        self.must_write()
        try:
            connection = self._datastore.pool.get_connection()
            try:
                with closing(connection.cursor().sqlite_cursor) as cursor:
                    cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
                    cursor.execute("VACUUM")
            finally:
                self._datastore.pool.put_connection(connection)
        except FAULTS as error:
            raise translated(error, self.path) from error

    def close(self) -> None:
        """Closes the file. Safe to call twice."""
        self._datastore.close()
        if self._tidy:
            self._tidy = False
            self._remove_empty_log()

    def _remove_empty_log(self) -> None:
        """Removes the empty -wal and -shm that a reader leaves behind.

        SQLite removes them under its own locks when the last connection that may write closes. Does nothing if a writer
        is there, or if the media is read-only.
        """
        with suppress(*FAULTS), closing(sqlite3.connect(self._uri("mode=rw"), uri=True)) as connection:
            connection.execute("PRAGMA user_version")  # opens the log, and reads no schema

    @contextmanager
    def _transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        try:
            with self._datastore.transaction(commit=commit) as c:
                yield c
        except FAULTS as error:
            raise translated(error, self.path) from error
