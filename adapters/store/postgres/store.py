"""The record in a PostgreSQL database, for controllers with several replicas: any number of readers, one writer at a
time.

The epoch keeps a replaced writer out. The place is a URL, `postgresql://user@host:port/database?schema=kerf`. All parts
but `schema` are libpq's own, as are the environment's PGPASSWORD, PGPASSFILE and PGSSLMODE. A record is one schema,
"kerf" if the URL names none. A turn is on the server's disk when `append` returns. Every scan checks the hash chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from eventsourcing.persistence import StoredEvent
from psycopg import Cursor
from psycopg.conninfo import conninfo_to_dict

from kerf.adapters.store.chained import ChainedStore, ChainRow, Mode, SnapshotRow, crowded
from kerf.adapters.store.postgres.errors import FAULTS, translated
from kerf.adapters.store.postgres.recorder import Datastore, RecordRecorder, read_head
from kerf.adapters.store.record_head import Head
from kerf.adapters.store.transaction import Session
from kerf.engine.passwords import without_password
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.errors import NotARecord, RecordCorrupt, RecordNotFound, SchemaNameTooLong

SCHEMA = "kerf"
_CONNECT_TIMEOUT = 5  # seconds
_MAX_SHOWN = 200  # characters of a URL that may be of any length
_MAX_SCHEMA = 63  # bytes: PostgreSQL's NAMEDATALEN less one
_URL = "Write postgresql://user@host:port/database?schema=kerf"
_ESCAPE = "Write %40 for @, %2F for /, %3F for ?, %23 for # in it, or give it by PGPASSWORD or PGPASSFILE"


_OTHER_TABLES = ("blobs", "snapshots", "bases")


class _PostgresSession:
    def __init__(self, cursor: Cursor[Any]) -> None:
        self._cursor = cursor

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        self._cursor.execute(_told(statement), values)
        return self._cursor.fetchall() if self._cursor.description is not None else []

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(_told(statement), rows)


def _told(statement: str) -> bytes:
    named = statement.format(position="notification_id", blob="bytea", bigint="bigint")
    return named.replace("%", "%%").replace("?", "%s").encode()


class PostgresStore(ChainedStore):
    """`kerf.engine.record.store.Store` in a schema of a database. `mode`: "create" a new record, "write" or "read" an
    existing one.

    `lock_timeout` (ms) is how long a write waits for another process's lock. `idle_timeout` (ms) is when the server
    takes the lock from a process that stopped in the middle of a turn (suspended, or cut off). It must be shorter than
    another replica needs to get the Lease. Opening raises `RecordNotFound`, `RecordExists`, `NotARecord`,
    `FormatUnsupported`, `RecordCorrupt` or another `StoreError`.
    """

    def __init__(
        self, url: str, mode: Mode, *, lock_timeout: int = 5_000, idle_timeout: int = 10_000, codec: Codec = CODEC
    ) -> None:
        self.place, self.mode = without_password(url), mode
        self._codec = codec
        conninfo, schema = _split(url, self.place)
        self._datastore = Datastore(
            conninfo, schema, lock_timeout=lock_timeout, idle_timeout=idle_timeout, read_only=mode == "read"
        )
        try:
            self._connect(conninfo)
            self._recorder = RecordRecorder(self._datastore)
            if mode == "create":
                with self._translated():
                    self._recorder.create_table()
            self._check(schema)
        except BaseException:
            self.close()
            raise

    def _connect(self, conninfo: str) -> None:
        """Connects once without the pool, because the pool would retry until its timeout and then not say what
        failed.
        """
        with self._translated():
            psycopg.connect(conninfo, connect_timeout=_CONNECT_TIMEOUT).close()

    def _check(self, schema: str) -> None:
        with self._transaction() as c:
            c.execute("SELECT to_regnamespace(quote_ident(%s)), to_regclass('record')", (schema,))
            there, table = c.fetchone() or (None, None)
            if there is None:
                raise RecordNotFound(f"there is no schema {schema!r}", where=self.place, hint="Check the URL")
            if table is None:
                raise NotARecord(f"the schema {schema!r} holds no record", where=self.place, hint="Check the URL")
            c.execute("SELECT format FROM record")
            row = c.fetchone()
        self._check_format(row and row[0])
        if self.mode != "read":
            head = self.head()
            self._chain_at(head.position, head, self.cut())

    # ── ChainedStore ───────────────────────────────────────────────────────────────────────────────────────────────

    def head(self) -> Head:
        with self._transaction() as c:
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
        with self._translated(first):
            self._recorder.insert_events(events, first=first, epochs=epochs, record_id=record_id, blobs=blobs)

    def _rows(self, after: int, until: int) -> tuple[list[ChainRow], Exception | None]:
        statement = (
            "SELECT notification_id, coalesce(state, ''), coalesce(chain, '') FROM stored_events "
            "WHERE notification_id > %s AND notification_id <= %s ORDER BY notification_id"
        )
        try:
            with self._transaction() as c:
                c.execute(statement, (after, until))
                return c.fetchall(), None
        except RecordCorrupt as error:  # a page of the table is damaged; the server does not say where
            return [], error

    def _chain_value(self, position: int) -> bytes | None:
        row = self._one("SELECT chain FROM stored_events WHERE notification_id = %s", position)
        return None if row is None else row[0]

    def _position_of(self, stream: str, version: int) -> int | None:
        row = self._one(
            "SELECT notification_id FROM stored_events WHERE originator_id = %s AND originator_version = %s",
            stream,
            version,
        )
        return None if row is None else row[0]

    def _blob_row(self, digest: str) -> Sequence[Any] | None:
        return self._one("SELECT packed, size, content FROM blobs WHERE digest = %s", digest)

    def _one(self, statement: str, *values: str | int) -> Sequence[Any] | None:
        with self._transaction() as c:
            c.execute(statement, values)
            return c.fetchone()

    def _snapshot_rows(self, until: int | None, schema: str) -> Iterator[SnapshotRow]:
        with self._transaction() as c:
            c.execute(
                "SELECT position FROM snapshots WHERE schema = %s AND position <= %s ORDER BY position DESC",
                (schema, read_head(c).position if until is None else until),
            )
            positions = [row[0] for row in c.fetchall()]
        for position in positions:  # one at a time: they are large, and the first will do
            row = self._one(
                "SELECT position, digest, hash, packed, size, state FROM snapshots WHERE schema = %s AND position = %s",
                schema,
                position,
            )
            if row is not None:
                at, digest, seal, how, size, packed = row
                yield at, digest, seal, how, size, packed

    def _keep_snapshot(self, schema: str, row: SnapshotRow) -> None:
        position, digest, seal, how, size, packed = row
        with self._transaction(commit=True) as c:
            c.execute("DELETE FROM snapshots WHERE schema <> %s OR position = %s", (schema, position))
            c.execute(
                "INSERT INTO snapshots VALUES (%s,%s,%s,%s,%s,%s,%s)",
                (schema, position, digest, how, size, packed, seal),
            )
            c.execute("SELECT position FROM snapshots")
            c.execute("DELETE FROM snapshots WHERE position = ANY(%s)", (crowded(at for (at,) in c.fetchall()),))

    @contextmanager
    def session(self, *, commit: bool = False) -> Iterator[Session]:
        with self._transaction(commit=commit) as c:
            if commit:
                c.execute("SELECT 1 FROM record FOR UPDATE")
            yield _PostgresSession(c)

    def _has_cut(self, session: Session) -> bool:
        return session.run("SELECT to_regclass('cut')")[0][0] is not None

    def size(self, entries: int) -> int:
        """Estimates the size: on disk, the entries' tables also have unused room that will be used again."""
        with self.session() as session:
            rest = [table for table in _OTHER_TABLES if session.run("SELECT to_regclass(?)", table)[0][0] is not None]
            return entries + sum(int(session.run("SELECT pg_total_relation_size(?)", table)[0][0]) for table in rest)

    def give_back(self) -> Iterator[None]:
        """Does nothing: the server's autovacuum makes the room usable again."""
        return iter(())

    def close(self) -> None:
        self._datastore.close()

    @contextmanager
    def _transaction(self, *, commit: bool = False) -> Iterator[Cursor[Any]]:
        with self._translated(), self._datastore.transaction(commit=commit) as c:
            yield c

    @contextmanager
    def _translated(self, position: int = 0) -> Iterator[None]:
        try:
            yield
        except FAULTS as error:
            raise translated(error, self.place, position) from error


def _split(url: str, place: str) -> tuple[str, str]:
    """Splits the URL into libpq's part and the schema. Raises `SchemaNameTooLong`, and `RecordNotFound`, also for a URL
    that libpq takes apart at another place than its author: it would quote a piece of the password.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise RecordNotFound("the URL cannot be read", where=place, hint=_URL) from None
    login, at, _ = parts.netloc.rpartition("@")
    if "@" in login or (not at and ":" in parts.netloc and "@" in url):
        raise RecordNotFound("the URL cannot be read: a password has an unescaped character", where=place, hint=_ESCAPE)
    query = parse_qsl(parts.query, keep_blank_values=True)
    schema = next((value for key, value in query if key == "schema" and value), SCHEMA)
    if (size := len(schema.encode())) > _MAX_SCHEMA:
        raise SchemaNameTooLong(
            f"the schema's name has {size} bytes, {_MAX_SCHEMA} at most: PostgreSQL cuts the rest off, and two records "
            "whose names begin alike would be one",
            where=place[:_MAX_SHOWN],
            hint="Give the schema a shorter name",
        )
    rest = urlencode([(key, value) for key, value in query if key != "schema"])
    conninfo = urlunsplit(parts._replace(query=rest))
    try:
        conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as error:
        why = " ".join(str(error).split())
        why = why if "parameter" in why else why.partition(' "')[0]  # what else libpq quotes may be the password
        raise RecordNotFound(f"the URL cannot be read: {why}", where=place, hint=_URL) from None
    return conninfo, schema
