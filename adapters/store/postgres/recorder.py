"""`eventsourcing`'s PostgreSQL recorder, extended to store the record's head and blobs in the events' transaction.

A record is one schema of a database. The recorder's table `stored_events` keeps its columns, but the writer assigns
`notification_id`, the entry's position, without gaps; the entry's chain value is in a further column. The head's row is
locked while a turn is stored. So writers take turns, and each sees the position and the epoch that the last one left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from psycopg import Connection, Cursor
from psycopg.rows import TupleRow, tuple_row
from psycopg.sql import SQL, Composed, Identifier
from psycopg_pool import ConnectionPool

from kerf.adapters.store.compression import pack
from kerf.adapters.store.record_head import EMPTY, Head, checked_head, follow
from kerf.adapters.store.retention.cut_tables import TABLES as CUT_TABLES

_TABLES = (
    "CREATE TABLE {}.record (one integer PRIMARY KEY CHECK (one = 1), format integer, id text, position bigint, "
    "chain bytea, epoch bigint, seal bytea)",
    "CREATE TABLE {}.stored_events (originator_id text, originator_version bigint, topic text, state bytea, "
    "notification_id bigint PRIMARY KEY, chain bytea, UNIQUE (originator_id, originator_version))",
    "CREATE TABLE {}.blobs (digest text PRIMARY KEY, packed integer, size integer, content bytea)",
    "CREATE TABLE {}.snapshots (schema text, position bigint, digest text, packed integer, size integer, state bytea, "
    "hash text, PRIMARY KEY (schema, position))",
)
_CONNECTIONS = 4
_PATIENCE = 5.0  # seconds that a call waits for a server that is away; the next call tries again
# A turn that was acknowledged must outlive a crash of the server, whatever the database's owner set for others.
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"


class Datastore(PostgresDatastore):
    """Connections to one database. `conninfo` is libpq's URL, `schema` holds the record, times are in milliseconds."""

    def __init__(self, conninfo: str, schema: str, *, lock_timeout: int, idle_timeout: int, read_only: bool) -> None:
        super().__init__("", "", 0, "", "", schema=schema, originator_id_type="text")

        def configure(connection: Connection[TupleRow]) -> None:
            connection.autocommit = True
            connection.execute(_DURABLE)
            connection.execute(SQL("SET search_path TO {}").format(Identifier(schema)))
            connection.execute(SQL("SET lock_timeout TO {}").format(lock_timeout))
            connection.execute(SQL("SET idle_in_transaction_session_timeout TO {}").format(idle_timeout))
            if read_only:
                connection.execute("SET default_transaction_read_only TO on")

        self.pool: ConnectionPool[Connection[TupleRow]] = ConnectionPool(  # type: ignore[assignment]
            conninfo,
            kwargs={"row_factory": tuple_row},
            min_size=1,
            max_size=_CONNECTIONS,
            open=False,
            timeout=_PATIENCE,
            reconnect_timeout=_PATIENCE,
            configure=configure,
            check=ConnectionPool.check_connection,
        )

    def register_type_adapters(self) -> None:
        """Registers nothing: the library inserts composite values, but a record's rows are plain."""

    @contextmanager
    def transaction(self, *, commit: bool = False) -> Iterator[Cursor[Any]]:
        """Opens a transaction as the library does, but raises psycopg's own errors."""
        self.pool.open()
        with self.pool.connection() as connection, connection.transaction(force_rollback=not commit):
            yield connection.cursor()


class RecordRecorder(PostgresApplicationRecorder):
    """Appends one turn: events, chain, blobs and the head together, or nothing."""

    datastore: Datastore

    def __init__(self, datastore: Datastore) -> None:
        super().__init__(datastore)
        # Not the library's: it gives positions from a sequence, which leaves holes behind refused turns.
        # Those of a cut have no schema before their names: the connection's own is meant.
        self.sql_create_statements = [
            *(_named(table, datastore.schema) for table in _TABLES),
            *(SQL(table).format(blob=SQL("bytea"), bigint=SQL("bigint")) for table in CUT_TABLES),
        ]

    def create_table(self) -> None:
        """Makes the tables in one transaction. Raises psycopg's DuplicateTable if there is a record already."""
        with self.datastore.transaction(commit=True) as c:
            c.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(self.datastore.schema)))
            self._create_table(c)
            write_head(c, EMPTY)

    def insert_events(
        self,
        stored_events: Sequence[StoredEvent],
        *,
        first: int = 0,
        epochs: tuple[int, int] = (0, 0),
        record_id: str = "",
        blobs: Sequence[tuple[str, bytes]] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Inserts a turn's events. The other arguments are those of `head.follow`.

        If the connection breaks during the commit, it is unknown whether the turn was stored. The chain tells, because
        no other record has its value after the turn.
        """
        stored: Head | None = None
        try:
            with self.datastore.transaction(commit=True) as c:
                stored, rows = follow(
                    read_head(c, lock=True), stored_events, first=first, epochs=epochs, record_id=record_id
                )
                c.executemany(
                    "INSERT INTO stored_events "
                    "(notification_id, originator_id, originator_version, topic, state, chain) "
                    "VALUES (%s,%s,%s,%s,%s,%s)",
                    rows,
                )
                if blobs:
                    c.executemany(
                        "INSERT INTO blobs VALUES (%s,%s,%s,%s) ON CONFLICT DO NOTHING",
                        [(digest, *_packed(content)) for digest, content in blobs],
                    )
                write_head(c, stored)
        except psycopg.OperationalError:
            if stored is None or not self._holds(stored):
                raise
        return range(first, first + len(stored_events))

    def _holds(self, head: Head) -> bool:
        """Returns whether the chain has this value at this position."""
        with self.datastore.transaction() as c:
            c.execute("SELECT chain FROM stored_events WHERE notification_id = %s", (head.position,))
            row = c.fetchone()
        return row is not None and bytes(row[0]) == head.chain


def _named(statement: str, schema: str) -> Composed:
    return SQL(statement).format(Identifier(schema))


def _packed(content: bytes) -> tuple[int, int, bytes]:
    how, packed = pack(content)
    return how, len(content), packed


def write_head(c: Cursor[Any], head: Head) -> None:
    c.execute(
        "INSERT INTO record VALUES (1,%s,%s,%s,%s,%s,%s) ON CONFLICT (one) DO UPDATE SET format = EXCLUDED.format, "
        "id = EXCLUDED.id, position = EXCLUDED.position, chain = EXCLUDED.chain, epoch = EXCLUDED.epoch, "
        "seal = EXCLUDED.seal",
        (*msgspec.structs.astuple(head), head.seal()),
    )


def read_head(c: Cursor[Any], *, lock: bool = False) -> Head:
    """Reads the head. Raises `RecordCorrupt`. With `lock`, other writers wait until the transaction ends."""
    columns = "SELECT format, id, position, chain, epoch, seal FROM record"
    c.execute(f"{columns} FOR UPDATE" if lock else columns)
    return checked_head(c.fetchone() or ())
