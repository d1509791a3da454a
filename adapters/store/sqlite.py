"""The record in one SQLite file (.kerf): one writer, any number of readers.

The writer's connection is in WAL mode with synchronous=FULL: a turn that `append` has returned from survives a power
cut. A reader opens the file read-only, also from read-only media, and never changes it. Every scan checks the hash
chain; a damaged file is readable up to the damage, and says where that is.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteCursor

from kerf.adapters.store.faults import FAULTS, translated
from kerf.adapters.store.packing import Unpackable, digest_of, pack, unpack
from kerf.adapters.store.reading import started_as
from kerf.adapters.store.recorder import FORMAT, SALVAGE, Datastore, Head, RecordRecorder, read_head
from kerf.engine.record.chain import START, Checkpoint, link
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import (
    BlobCorrupt,
    BlobMissing,
    FormatUnsupported,
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreError,
    StoreLocked,
    StoreReadOnly,
    StreamConflict,
    TurnRefused,
)
from kerf.engine.runtime.ports import Append

Mode = Literal["create", "write", "read"]
_PAGE = 4096  # entries per read transaction of a scan


class SQLiteStore:
    """`kerf.engine.runtime.ports.Store` on a file. `mode`: "create" a new record, "write" or "read" an existing one.

    `lock_timeout` is how long a write waits for another process's lock, in milliseconds. Opening raises
    `RecordNotFound`, `RecordExists`, `NotARecord`, `FormatUnsupported`, `RecordCorrupt` or another `StoreError`.
    """

    def __init__(self, path: str | Path, mode: Mode, *, lock_timeout: int = 5_000, codec: Codec = CODEC) -> None:
        self.path = Path(path)
        self.mode = mode
        self._codec = codec
        self._lock_timeout = lock_timeout
        self._tidy = False
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
        """SQLite's write-ahead log, which is there while a connection is open, and after a crash."""
        return Path(f"{self.path}-wal")

    def _open_for_writing(self) -> Datastore:
        if self.mode == "write" or (self.path.exists() and self.path.stat().st_size):
            self._look_first()
        mode = "rwc" if self.mode == "create" else "rw"
        pragmas = ("synchronous = FULL", f"busy_timeout = {self._lock_timeout}")
        return Datastore(self._uri(f"mode={mode}"), pragmas=pragmas, read_only=False)

    def _look_first(self) -> None:
        """Refuses a file without having touched it: opening for writing puts any database into WAL mode."""
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
        """Where the folder cannot be written (SQLite wants files beside a record in WAL mode), nobody else can be
        writing there either, and the file is opened as immutable. A file that was cut off is opened all the same."""
        self._tidy = not self._log().exists()
        unmerged = not self._tidy and self._log().stat().st_size > 0
        query, salvage = "mode=ro", False
        while True:
            datastore = self._reader(query, salvage=salvage)
            try:
                with datastore.transaction(commit=False) as c:
                    c.execute("SELECT count(*) FROM sqlite_master")
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
        """Makes the tables in one transaction; what a crash in the middle leaves can be created again."""
        with self._transaction(commit=True) as c:
            self._refuse_tables(c)
            self._recorder._create_table(c)

    def _refuse_tables(self, c: SQLiteCursor) -> None:
        c.execute("SELECT count(*) FROM sqlite_master")
        if c.fetchone()[0]:
            raise RecordExists("there is a database already", where=str(self.path), hint='Open it with mode "write"')

    def _check(self) -> None:
        with self._transaction(commit=False) as c:
            c.execute("SELECT 1 FROM sqlite_master WHERE name = 'record'")
            if c.fetchone() is None:
                raise NotARecord("this SQLite file is not a record", where=str(self.path), hint="Check the path")
            c.execute("SELECT format FROM record")
            row = c.fetchone()
            if row is not None and isinstance(row[0], int) and row[0] > FORMAT:
                raise FormatUnsupported(
                    f"the record has format {row[0]}, this version of kerf knows {FORMAT}",
                    where=str(self.path),
                    hint="Use a newer version of kerf",
                )
        if self.mode != "read":
            head = self.head()
            self._chain_at(head.position, head)

    # ── ports.Store ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def record_id(self) -> str:
        """The id that `RecordStarted` gave the record, empty before it."""
        head, broken_head = self._end()
        if broken_head is None:
            return head.id
        return next((started_as(entry) for entry in self.scan(until=1)), "")

    def append(self, turn: Append) -> None:
        """As `ports.Store.append`. A stream's versions are unique; positions go on from the end without holes."""
        if self.mode == "read":
            raise StoreReadOnly("the record was opened for reading", where=str(self.path))
        events = self._events(turn)
        blobs = sorted(turn.blobs.items())
        for digest, content in blobs:
            if digest_of(content) != digest:
                raise TurnRefused(f"the blob {digest!r} has another content", position=turn.entries[0].position)
        first = turn.entries[0]
        epochs = [entry.epoch for entry in turn.entries]
        try:
            self._recorder.insert_events(
                events,
                first=first.position,
                epochs=(min(epochs), max(epochs)),
                record_id=started_as(first),
                blobs=blobs,
            )
        except FAULTS as error:
            fault = translated(error, self.path, first.position)
            if isinstance(fault, StreamConflict):
                fault = self._taken(turn) or fault
            raise fault from error

    def _events(self, turn: Append) -> list[StoredEvent]:
        """The turn as the recorder wants it. Raises `TurnRefused`."""
        if not turn.entries:
            raise TurnRefused("the turn has no entries", hint="A turn in which nothing happened is not appended")
        first = turn.entries[0].position
        for position, entry in enumerate(turn.entries, first):
            if entry.position != position or entry.turn != first:
                raise TurnRefused(
                    f"entry {position - first + 1} of the turn that begins at {first} has position {entry.position} "
                    f"and turn {entry.turn}",
                    position=first,
                )
        encode = self._codec.encode
        return [
            StoredEvent(
                originator_id=entry.stream, originator_version=entry.version, topic=entry.type, state=encode(entry)
            )
            for entry in turn.entries
        ]

    def _taken(self, turn: Append) -> StreamConflict | None:
        """Which version of which stream is stored already; None if the turn holds it twice itself."""
        with self._transaction(commit=False) as c:
            for entry in turn.entries:
                c.execute(
                    "SELECT rowid FROM stored_events WHERE originator_id = ? AND originator_version = ?",
                    (entry.stream, entry.version),
                )
                row = c.fetchone()
                if row is not None:
                    return StreamConflict(
                        f"version {entry.version} of stream {entry.stream!r} is at position {row[0]} already",
                        position=entry.position,
                        hint="Read the stream again, and decide again",
                    )
        return None

    def scan(self, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """As `ports.Store.scan`, up to the record's end at the time of the first entry. Raises `RecordCorrupt` at the
        first position that is damaged, after yielding all before it."""
        return map(self._codec.decode, self.encoded(after, until))

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """The bytes of the entries that `scan` yields, checked against the chain. Where the head is damaged, all
        entries that there are come before the error."""
        head, broken_head = self._end()
        end = head.position if until is None else min(until, head.position)
        position, value = after, self._chain_at(after, head) if after < end else b""
        while position < end:
            page_end = min(position + _PAGE, end)
            rows, fault = self._rows(position, page_end)
            for at, encoded, stored in rows:
                position += 1
                value = link(value, encoded)
                if at != position or stored != value:
                    raise _damage(position, "the entry is missing" if at > position else "the entry was changed")
                yield encoded
            if position < page_end:
                raise _damage(position + 1, str(fault or broken_head or "the entry is missing")) from fault
        if end == head.position and end > after and value != head.chain:
            raise _damage(end, "the end is not the one that the head names")

    def _end(self) -> tuple[Head, RecordCorrupt | None]:
        """The head; if it is damaged, one that is never reached, and what is wrong with the real one."""
        try:
            return self.head(), None
        except RecordCorrupt as error:
            return Head(FORMAT, "", sys.maxsize, b"", 0), error

    def _rows(self, after: int, until: int) -> tuple[list[tuple[int, bytes, bytes]], Exception | None]:
        """A page of rows, as far as they can be read, and what stopped the reading."""
        rows: list[tuple[int, bytes, bytes]] = []
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
                rows.extend(cursor)
        except FAULTS as error:
            fault = translated(error, self.path, after + len(rows) + 1)
            if not isinstance(fault, RecordCorrupt):
                raise fault from error
            return rows, error
        return rows, None

    def _chain_at(self, position: int, head: Head) -> bytes:
        """The chain value after the entry at `position`. Raises `RecordCorrupt`."""
        if position == START.position:
            return START.value
        with self._transaction(commit=False) as c:
            c.execute("SELECT chain FROM stored_events WHERE rowid = ?", (position,))
            row = c.fetchone()
        if row is None or (position == head.position and row[0] != head.chain):
            raise _damage(position, "the entry is missing" if row is None else "the head names another chain value")
        value: bytes = row[0]
        return value

    def checkpoint(self, position: int | None = None) -> Checkpoint:
        """The chain's value after `position`, or at the end of the record if that comes before."""
        head, _ = self._end()
        at = head.position if position is None else min(position, head.position)
        return Checkpoint(at, self._chain_at(at, head))

    def head(self) -> Head:
        """Format, record id, last position, chain value and epoch, as stored now."""
        with self._transaction(commit=False) as c:
            return read_head(c)

    def first_position(self) -> int:
        return START.position + 1

    def last_position(self) -> int:
        return self.head().position

    def epoch(self) -> int:
        return self.head().epoch

    def blob(self, digest: str) -> bytes:
        """As `ports.Store.blob`. Raises `BlobMissing` or `BlobCorrupt`."""
        with self._transaction(commit=False) as c:
            c.execute("SELECT packed, size, content FROM blobs WHERE digest = ?", (digest,))
            row = c.fetchone()
        if row is None:
            raise BlobMissing(f"no blob {digest!r} is stored", where=str(self.path), hint=SALVAGE)
        try:
            content = unpack(*row)
        except (Unpackable, TypeError) as error:
            raise BlobCorrupt(f"the blob {digest} is damaged: {error}", where=str(self.path), hint=SALVAGE) from error
        if digest_of(content) != digest:
            raise BlobCorrupt(f"the blob {digest} was changed", where=str(self.path), hint=SALVAGE)
        return content

    def put_snapshot(self, position: int, schema: str, state: bytes, digest: str) -> None:
        """As `ports.Store.put_snapshot`. Snapshots of other schemas are of no use any more and go."""
        if self.mode == "read":
            raise StoreReadOnly("the record was opened for reading", where=str(self.path))
        how, packed = pack(state)
        with self._transaction(commit=True) as c:
            if position > read_head(c).position:
                raise StoreError("a snapshot beyond the end of the record", position=position)
            c.execute("DELETE FROM snapshots WHERE schema <> ?", (schema,))
            c.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?,?,?,?,?,?,?)",
                (schema, position, digest, how, len(state), packed, _seal(schema, position, digest, state)),
            )

    def snapshot(self, until: int | None, schema: str) -> tuple[int, bytes, str] | None:
        """As `ports.Store.snapshot`. A damaged one is passed over: it is only a cache."""
        try:
            with self._datastore.transaction(commit=False) as c:
                c.execute(
                    "SELECT position, digest, hash, packed, size, state FROM snapshots "
                    "WHERE schema = ? AND position <= ? ORDER BY position DESC",
                    (schema, read_head(c).position if until is None else until),
                )
                for position, digest, seal, *packed in c.sqlite_cursor:
                    with suppress(Unpackable, TypeError):
                        state = unpack(*packed)
                        if _seal(schema, position, digest, state) == seal:
                            return position, state, digest
        except FAULTS as error:
            fault = translated(error, self.path)
            if not isinstance(fault, RecordCorrupt):
                raise fault from error
        return None

    def close(self) -> None:
        """Closes the file. Safe to call twice."""
        self._datastore.close()
        if self._tidy:
            self._tidy = False
            self._remove_empty_log()

    def _remove_empty_log(self) -> None:
        """A reader leaves an empty -wal and -shm behind. SQLite removes them under its own locks when the last
        connection that may write closes; if a writer is there, or the media is read-only, this does nothing."""
        with suppress(*FAULTS), closing(sqlite3.connect(self._uri("mode=rw"), uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")

    @contextmanager
    def _transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        try:
            with self._datastore.transaction(commit=commit) as c:
                yield c
        except FAULTS as error:
            raise translated(error, self.path) from error


def _seal(schema: str, position: int, digest: str, state: bytes) -> str:
    return digest_of(f"{schema}\x00{position}\x00{digest}\x00".encode() + state)


def _damage(position: int, what: str) -> RecordCorrupt:
    return RecordCorrupt(f"the record is damaged: {what}", position=position, hint=SALVAGE)
