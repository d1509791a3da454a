"""The PostgreSQL store: the contract of every store, two replicas, and the faults that a server can have."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from kerf.adapters.cli.main import main
from kerf.adapters.store.files.bundle import export_bundle, inspect_bundle
from kerf.adapters.store.open import open_record
from kerf.adapters.store.postgres.store import PostgresStore
from kerf.adapters.store.read_only import blobs_of
from kerf.engine.passwords import without_password
from kerf.engine.record.errors import (
    BlobCorrupt,
    EpochRefused,
    FormatUnsupported,
    NotARecord,
    PositionConflict,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreError,
    StoreLocked,
    StoreReadOnly,
)
from kerf.engine.record.store import Append, Store
from tests.contract.cut_contract import CutContract
from tests.contract.store_contract import SHAPE, SHAPE_BYTES, StoreContract, pods
from tests.support.repository import ROOT
from tests.support.servers.postgres import MISSING, binaries, running

pytestmark = pytest.mark.skipif(binaries() is None, reason=MISSING)
GOLDEN = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with running() as postgres:
        yield postgres.url


@pytest.fixture
def url(database: str) -> str:
    """The URL of an empty record in a schema whose name must be quoted."""
    place = f"{database}?schema=Record%20{next(_numbers)}"
    PostgresStore(place, "create").close()
    return place


def schema_of(url: str) -> str:
    return url.rpartition("=")[2].replace("%20", " ")


def by_hand(url: str, statement: str) -> None:
    """Changes the record as no store would."""
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        connection.execute(SQL("SET search_path TO {}").format(Identifier(schema_of(url))))
        connection.execute(statement.encode())


class TestPostgresStore(StoreContract, CutContract):
    @pytest.fixture(autouse=True)
    def _server(self, database: str) -> None:
        self.database = database

    def create(self, tmp_path: Path) -> str:
        place = f"{self.database}?schema=Record%20{next(_numbers)}"
        PostgresStore(place, "create").close()
        return place

    def open(self, place: str, mode: Literal["write", "read"]) -> Store:
        return PostgresStore(place, mode)


# ── two replicas ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_writer_that_lost_the_office_is_fenced(url: str) -> None:
    """L-296: however it learns of it, its next turn is refused, and the new one's goes through."""
    old, new = PostgresStore(url, "write"), PostgresStore(url, "write")
    old.append(pods(1, 3, epoch=1))
    new.append(pods(4, 1, epoch=2))
    with pytest.raises(EpochRefused, match="KERF103"):
        old.append(pods(5, 1, epoch=1))
    new.append(pods(5, 2, epoch=2))
    assert (old.last_position(), old.epoch()) == (6, 2)
    old.close()
    new.close()


def test_a_writer_that_stands_still_in_a_turn_holds_the_next_one_up_for_a_while_only(url: str) -> None:
    """Suspended, or cut off: the server takes the lock from it, and when it wakes up nothing of its turn is stored."""
    frozen, new = PostgresStore(url, "write", idle_timeout=300), PostgresStore(url, "write")
    frozen.append(pods(1, 3, epoch=1))
    held = frozen.session(commit=True)
    held.__enter__().run("UPDATE record SET epoch = 7")
    new.append(pods(4, 1, epoch=2))
    with pytest.raises(StoreError, match="KERF1"):
        held.__exit__(None, None, None)
    assert (new.last_position(), new.epoch()) == (4, 2)
    with pytest.raises(EpochRefused, match="KERF103"):
        frozen.append(pods(5, 1, epoch=1))
    frozen.close()
    new.close()


def test_two_writers_at_once_make_one_unbroken_record(url: str) -> None:
    """Each turn is stored by one of the two; the other is told that its view is old, reads, and tries again."""
    refused: list[str] = []

    def write() -> None:
        store = PostgresStore(url, "write")
        for _ in range(40):
            while True:
                try:
                    store.append(pods(store.last_position() + 1, 3))
                    break
                except PositionConflict as error:
                    refused.append(error.code)
        store.close()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    store = PostgresStore(url, "read")
    assert [entry.position for entry in store.scan()] == list(range(1, 241))
    assert all(entry.turn == entry.position - (entry.position - 1) % 3 for entry in store.scan())
    store.close()


def test_a_commit_whose_answer_was_lost_is_looked_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn is stored, but the connection breaks before the server says so: that is a success, once."""
    store = PostgresStore(url, "write")
    transaction = store._datastore.transaction
    broken = iter([True])

    class Breaking:
        def __init__(self, **options: Any) -> None:
            self.inner, self.commit = transaction(**options), options.get("commit")

        def __enter__(self) -> Any:
            return self.inner.__enter__()

        def __exit__(self, *error: Any) -> Any:
            done = self.inner.__exit__(*error)
            if self.commit and next(broken, False):
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return done

    monkeypatch.setattr(store._datastore, "transaction", Breaking)
    store.append(pods(1, 2))
    store.append(pods(3, 1))
    assert [entry.position for entry in store.scan()] == [1, 2, 3]
    store.close()


def test_turns_are_durable_whatever_the_database_is_set_to(url: str) -> None:
    by_hand(url, "ALTER ROLE kerf SET synchronous_commit TO off")
    try:
        store = PostgresStore(url, "write")
        with store._transaction() as c:
            c.execute("SHOW synchronous_commit")
            assert c.fetchone() == ("on",)
        store.close()
    finally:
        by_hand(url, "ALTER ROLE kerf RESET synchronous_commit")


@pytest.mark.slow
def test_a_server_that_crashes_has_what_was_acknowledged() -> None:
    """SIGQUIT is PostgreSQL's way to crash: nothing is written any more. It recovers when it starts again."""
    with running("fsync=on") as postgres:
        PostgresStore(postgres.url, "create").close()
        store = PostgresStore(postgres.url, "write")
        for first in range(1, 31, 3):
            store.append(pods(first, 3))
        postgres.crash()
        with pytest.raises(StoreError, match="does not answer"):
            store.append(pods(31, 3))
        postgres.start()
        assert [entry.position for entry in store.scan()] == list(range(1, 31))
        store.append(pods(31, 3))
        assert store.last_position() == 33
        store.close()


def test_a_connection_that_the_server_ended_is_replaced(url: str, database: str) -> None:
    store = PostgresStore(url, "write")
    store.append(pods(1, 1))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    store.append(pods(2, 1))
    assert store.last_position() == 2
    store.close()


def test_a_locked_record(url: str) -> None:
    store = PostgresStore(url, "write", lock_timeout=50)
    with psycopg.connect(url.partition("?")[0]) as other:
        other.execute(SQL("SELECT 1 FROM {}.record FOR UPDATE").format(Identifier(schema_of(url))))
        with pytest.raises(StoreLocked, match="KERF106"):
            store.append(pods(1, 1))
        assert store.last_position() == 0  # reading goes on
    store.append(pods(1, 1))
    store.close()


# ── opening ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_opening_what_is_not_there(database: str) -> None:
    for mode in ("read", "write"):
        with pytest.raises(RecordNotFound, match="KERF113"):
            PostgresStore(f"{database}?schema=none", mode)
        with pytest.raises(NotARecord, match="KERF108"):
            PostgresStore(f"{database}?schema=public", mode)
        with pytest.raises(StoreError, match=r"KERF100.*nowhere"):
            PostgresStore(database.replace("/postgres", "/nowhere"), mode)


def test_create_never_overwrites(url: str) -> None:
    store = PostgresStore(url, "write")
    store.append(pods(1, 2))
    with pytest.raises(RecordExists, match="KERF114"):
        PostgresStore(url, "create")
    assert store.last_position() == 2
    store.close()


def test_a_server_that_does_not_answer() -> None:
    with pytest.raises(StoreError, match=r"KERF100.*does not answer"):
        PostgresStore("postgresql://kerf:secret@127.0.0.1:1/none", "write")


def test_no_error_shows_the_password(database: str) -> None:
    with_password = database.replace("kerf@", "kerf:secret@")
    with pytest.raises(RecordNotFound) as caught:
        PostgresStore(f"{with_password}?schema=none&password=secret", "read")
    assert "secret" not in str(caught.value)
    assert "kerf@127.0.0.1" in str(caught.value)
    shown = without_password("postgresql://u:p@h:5/d?schema=s&password=p&sslmode=require")
    assert shown == "postgresql://u@h:5/d?schema=s&sslmode=require"


@pytest.mark.parametrize("url", ["postgresql://h/d?nonsense=1", "postgresql://[h/d"])
def test_a_url_that_libpq_cannot_read(url: str) -> None:
    with pytest.raises(RecordNotFound, match="cannot be read"):
        PostgresStore(url, "read")


def test_a_reader_cannot_write(url: str) -> None:
    store = PostgresStore(url, "read")
    with pytest.raises(StoreReadOnly, match="KERF107"):
        store.append(pods(1, 1))
    with pytest.raises(StoreReadOnly):
        store.put_snapshot(0, "s", b"", "")
    with pytest.raises(StoreReadOnly), store._transaction(commit=True) as c:
        c.execute("DELETE FROM record")
    store.close()


def test_a_user_without_rights(url: str) -> None:
    """What the server denies is said; a role that may only read can read."""
    by_hand(url, "CREATE ROLE watcher LOGIN")
    by_hand(url, f'GRANT USAGE ON SCHEMA "{schema_of(url)}" TO watcher')
    by_hand(url, f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema_of(url)}" TO watcher')
    store = PostgresStore(url.replace("kerf@", "watcher@"), "write")
    assert list(store.scan()) == []
    with pytest.raises(StoreReadOnly, match="may not do this"):
        store.append(pods(1, 1))
    store.close()


def test_the_rights_that_a_writer_needs(url: str) -> None:
    """Those of docs/stores.md: it may neither change nor delete an entry."""
    by_hand(url, "CREATE ROLE controller LOGIN")
    by_hand(url, f'GRANT USAGE ON SCHEMA "{schema_of(url)}" TO controller')
    by_hand(url, f'GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA "{schema_of(url)}" TO controller')
    by_hand(url, "GRANT UPDATE ON record TO controller")
    by_hand(url, "GRANT DELETE ON snapshots TO controller")
    store = PostgresStore(url.replace("kerf@", "controller@"), "write")
    store.append(pods(1, 2, blobs={SHAPE: SHAPE_BYTES}))
    for _ in range(2):
        store.put_snapshot(2, "s", b"state", "d")
    assert (store.last_position(), store.snapshot(None, "s")) == (2, (2, b"state", "d"))
    with pytest.raises(StoreReadOnly), store._transaction(commit=True) as c:
        c.execute("DELETE FROM stored_events")
    store.close()


def test_a_newer_format_is_unsupported(url: str) -> None:
    by_hand(url, "UPDATE record SET format = 3")
    with pytest.raises(FormatUnsupported, match="KERF110"):
        PostgresStore(url, "read")


# ── damage ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("harm", "position"),
    [
        ("DELETE FROM stored_events WHERE notification_id = 50", 50),
        ("DELETE FROM stored_events WHERE notification_id > 110", 111),
        ("UPDATE stored_events SET state = 'x' WHERE notification_id = 8", 8),
        ("UPDATE stored_events SET chain = NULL WHERE notification_id = 2", 2),
    ],
)
def test_what_was_changed_by_hand_shows_with_its_position(url: str, harm: str, position: int) -> None:
    store = PostgresStore(url, "write")
    store.append(pods(1, 120))
    by_hand(url, harm)
    got: list[int] = []
    with pytest.raises(RecordCorrupt, match="KERF109") as caught:
        got.extend(entry.position for entry in store.scan())
    assert (got, caught.value.position) == (list(range(1, position)), position)
    store.close()


@pytest.mark.parametrize("change", ["epoch = 0", "position = 100", "id = 'x'", "chain = NULL", "seal = NULL"])
def test_a_changed_head_is_noticed_before_anything_is_written(url: str, change: str) -> None:
    store = PostgresStore(url, "write")
    store.append(pods(1, 120))
    by_hand(url, f"UPDATE record SET {change}")
    with pytest.raises(RecordCorrupt):
        store.append(pods(121, 1))
    store.close()
    with pytest.raises(RecordCorrupt):
        PostgresStore(url, "write")
    reader = PostgresStore(url, "read")
    got: list[int] = []
    with pytest.raises(RecordCorrupt):
        got.extend(entry.position for entry in reader.scan())
    assert len(got) == 120
    reader.close()


@pytest.mark.slow
def test_a_changed_blob_and_a_changed_snapshot_are_noticed(url: str) -> None:
    store = PostgresStore(url, "write")
    store.append(pods(1, 2, blobs={SHAPE: SHAPE_BYTES}))
    store.put_snapshot(1, "s", b"good" * 9, "d")
    store.put_snapshot(2, "s", b"newer" * 9, "e")
    by_hand(url, "UPDATE blobs SET content = 'x', size = 1")
    by_hand(url, "UPDATE snapshots SET digest = 'other' WHERE position = 2")
    with pytest.raises(BlobCorrupt, match="KERF112"):
        store.blob(SHAPE)
    assert store.snapshot(None, "s") == (1, b"good" * 9, "d")
    store.close()


# ── through the front door ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_commands_and_bundles_take_the_url(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A whole life of a cluster, stored again turn by turn, is told and decided again as from its golden record."""
    golden = open_record(GOLDEN)
    store = open_record(url, "write")
    for _, entries in itertools.groupby(golden.scan(), key=lambda entry: entry.turn):
        kept = tuple(entries)
        named = {digest for entry in kept for digest in blobs_of(entry)}
        store.append(Append(kept, {digest: golden.blob(digest) for digest in named}))
    info = export_bundle(store, tmp_path / "r.kerfb")
    store.close()
    assert inspect_bundle(tmp_path / "r.kerfb") == info
    assert main(["verify", url]) == 0
    assert "byte for byte" in capsys.readouterr().out
    for command in (["log", "PLACE", "--json"], ["at", "PLACE", "--json"]):
        told = []
        for place in (url, str(GOLDEN)):
            assert main([place if part == "PLACE" else part for part in command]) == 0
            told.append(capsys.readouterr().out)
        assert told[0] == told[1] != ""
