"""The SQLite store: the contract of every store, and the faults that a file can have."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.adapters.store.chained import KEPT_SNAPSHOTS, WIDEST_GAP, crowded
from kerf.adapters.store.files.bundle import export_bundle, inspect_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.codec import Codec
from kerf.engine.record.entries import EntryType, UnknownEntry
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.errors import (
    BlobCorrupt,
    FormatUnsupported,
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
)
from kerf.engine.record.observations import RecordStarted
from kerf.engine.record.store import Append, Store
from tests.contract.cut_contract import CutContract, cut, filled
from tests.contract.store_contract import SHAPE, SHAPE_BYTES, StoreContract, pods, turn
from tests.support.repository import ROOT

ENTRIES = 120


class TestSQLiteStore(StoreContract, CutContract):
    def create(self, tmp_path: Path) -> str:
        path = tmp_path / "a record?.kerf"  # a name that a URI must quote
        SQLiteStore(path, "create").close()
        return str(path)

    def open(self, place: str, mode: Literal["write", "read"]) -> Store:
        return SQLiteStore(place, mode)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed record of several pages."""
    path = tmp_path_factory.mktemp("sound") / "sound.kerf"
    write(path)
    return path


def write(path: Path) -> None:
    store = SQLiteStore(path, "create")
    for first in range(1, ENTRIES, 10):
        store.append(pods(first, 10, blobs={SHAPE: SHAPE_BYTES} if first == 1 else None))
    store.put_snapshot(60, "s", b"state" * 100, "d")
    store.close()


def readable(path: Path) -> tuple[int, StoreError | None]:
    """How many entries a reader gets, each checked to be the one that was written, and what stopped it."""
    got = 0
    try:
        store = SQLiteStore(path, "read")
    except StoreError as error:
        return 0, error
    try:
        for entry in store.scan():
            got += 1
            expected = pods(got - (got - 1) % 10, 10).entries[(got - 1) % 10]
            assert entry == expected
        blob_and_snapshot(store)
    except StoreError as error:
        return got, error
    finally:
        store.close()
    return got, None


def blob_and_snapshot(store: SQLiteStore) -> None:
    assert store.blob(SHAPE) == SHAPE_BYTES
    assert store.snapshot(None, "s") in {None, (60, b"state" * 100, "d")}


# ── opening ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    for mode in ("read", "write"):
        with pytest.raises(RecordNotFound, match="KERF113"):
            SQLiteStore(tmp_path / "none.kerf", mode)
        assert not (tmp_path / "none.kerf").exists()


def test_create_never_overwrites(sound: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordExists, match="KERF114"):
        SQLiteStore(sound, "create")
    (tmp_path / "empty.kerf").touch()
    SQLiteStore(tmp_path / "empty.kerf", "create").close()  # an empty file holds nothing that could be lost


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\x00", os.urandom(5000)])
def test_what_is_not_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.kerf"
    path.write_bytes(content)
    for mode in ("read", "write"):
        with pytest.raises((NotARecord, RecordCorrupt)):
            SQLiteStore(path, mode)
    assert path.read_bytes() == content


def test_another_programs_database(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
    for mode in ("read", "write"):
        with pytest.raises(NotARecord, match="KERF108"):
            SQLiteStore(path, mode)
    with pytest.raises(RecordExists):
        SQLiteStore(path, "create")


def test_a_newer_format_is_unsupported(sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    with closing(sqlite3.connect(path, isolation_level=None)) as future:
        future.execute("UPDATE record SET format = 3")
    for mode in ("read", "write"):
        with pytest.raises(FormatUnsupported, match="KERF110"):
            SQLiteStore(path, mode)


def test_the_record_id_is_that_of_its_first_entry(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    assert store.record_id == ""
    store.append(turn([RecordStarted("r-42", "0.1.0")], first=1))
    store.append(pods(2, 1))
    assert store.record_id == "r-42"
    store.close()


def test_writes_are_durable_and_logged_ahead(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    with store._datastore.transaction(commit=False) as c:
        pragmas = [c.sqlite_cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert pragmas == ["wal", 2]  # 2 is FULL
    store.close()


# ── reading only ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_cannot_write_and_leaves_nothing_behind(sound: Path) -> None:
    before = sound.read_bytes()
    store = SQLiteStore(sound, "read")
    with pytest.raises(StoreReadOnly, match="KERF107"):
        store.append(pods(ENTRIES + 1, 1))
    with pytest.raises(StoreReadOnly):
        store.put_snapshot(1, "s", b"", "")
    assert len(list(store.scan())) == ENTRIES
    store.close()
    assert sound.read_bytes() == before
    assert [path.name for path in sound.parent.iterdir()] == [sound.name]


READ_AS_NOBODY = """
import os, sys
from kerf.adapters.store.files.bundle import export_bundle, inspect_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
from kerf.engine.record.errors import StoreError
try:
    print(sum(1 for _ in SQLiteStore(sys.argv[1], "read").scan()))
except StoreError as error:
    print(error.code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("unmerged", "expected"), [(False, f"{ENTRIES}\n"), (True, "KERF107\n")])
def test_a_folder_that_cannot_be_written(sound: Path, unmerged: bool, expected: str) -> None:
    """Root may write anywhere, so the reading is done as nobody; below a folder of its own that anybody may enter."""
    folder = Path(f"/tmp/kerf-read-only-{os.getpid()}-{unmerged}")
    folder.mkdir()
    try:
        path = Path(shutil.copy(sound, folder))
        if unmerged:
            writer = SQLiteStore(path, "write")
            writer.append(pods(ENTRIES + 1, 1))
            shutil.copy(f"{path}-wal", folder / "kept")
            writer.close()
            (folder / "kept").rename(f"{path}-wal")
        path.chmod(0o644)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_AS_NOBODY, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout == expected, done.stderr
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


# ── a second writer, a full disk ───────────────────────────────────────────────────────────────────────────────────


def test_a_locked_record(tmp_path: Path) -> None:
    path = tmp_path / "r.kerf"
    store = SQLiteStore(path, "create", lock_timeout=0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="KERF106"):
            store.append(pods(1, 3))
        assert store.last_position() == 0  # reading goes on
        other.execute("ROLLBACK")
    store.append(pods(1, 3))
    assert store.last_position() == 3
    store.close()


def test_a_reader_that_is_locked_out_says_so(sound: Path) -> None:
    """It must not read around the lock: what it would see is not what is stored."""
    with closing(sqlite3.connect(sound, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLocked):
            SQLiteStore(sound, "read", lock_timeout=0)
        other.execute("ROLLBACK")


def test_a_full_disk(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    store.append(pods(1, 3))
    with store._datastore.transaction(commit=False) as c:
        (pages,) = c.sqlite_cursor.execute("PRAGMA page_count").fetchone()
        c.sqlite_cursor.execute(f"PRAGMA max_page_count = {pages + 1}").fetchone()
    with pytest.raises(StoreFull, match="KERF105"):
        store.append(pods(4, 500, blobs={SHAPE: SHAPE_BYTES}))
    assert [entry.position for entry in store.scan()] == [1, 2, 3]
    with store._datastore.transaction(commit=False) as c:
        c.sqlite_cursor.execute(f"PRAGMA max_page_count = {pages + 1000}").fetchone()
    store.append(pods(4, 500))
    assert store.last_position() == 503
    store.close()


FILL_THE_DISK = """
import sys
from pathlib import Path
from kerf.adapters.store.files.bundle import export_bundle, inspect_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.errors import StoreError
from tests.contract.store_contract import pods
folder = Path(sys.argv[1])
(folder / "ballast").write_bytes(bytes(400_000))
store = SQLiteStore(folder / "r.kerf", "create")
codes = []
while not codes:
    stored = store.last_position()
    try:
        store.append(pods(stored + 1, 200))
    except StoreError as error:
        codes.append(error.code)
assert store.last_position() == stored == sum(1 for _ in store.scan())
(folder / "ballast").unlink()
store.append(pods(stored + 1, 200))
store.close()
assert sum(1 for _ in SQLiteStore(folder / "r.kerf", "read").scan()) == stored + 200
print(*codes)
"""
_IN_A_SMALL_DISK = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" -W error -c "$3" "$1"'


def may_mount() -> bool:
    command = shutil.which("unshare")
    return command is not None and subprocess.run([command, "-rm", "true"], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not may_mount(), reason="needs unshare(1) and the right to mount in a namespace of its own")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", _IN_A_SMALL_DISK, "sh", str(tmp_path), sys.executable, FILL_THE_DISK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("KERF105\n", 0), done.stderr


# ── damage ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keep", [0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_file_that_was_cut_off_is_readable_up_to_the_cut(sound: Path, tmp_path: Path, keep: float) -> None:
    path = tmp_path / "cut.kerf"
    path.write_bytes(sound.read_bytes()[: int(sound.stat().st_size * keep)])
    got, error = readable(path)
    assert isinstance(error, RecordCorrupt)
    assert error.position == got + 1
    if keep < 0.95:  # at least a page is gone: nobody goes on writing to it
        with pytest.raises(RecordCorrupt):
            SQLiteStore(path, "write")


@pytest.mark.parametrize("damage", ["cut", "head"])
def test_what_is_left_of_a_damaged_record_can_be_handed_on(sound: Path, tmp_path: Path, damage: str) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    if damage == "cut":
        path.write_bytes(path.read_bytes()[: sound.stat().st_size * 7 // 8])
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("UPDATE record SET seal = x'00'")
    got, error = readable(path)
    assert isinstance(error, RecordCorrupt)
    assert got > 30
    store = SQLiteStore(path, "read")
    info = export_bundle(store, tmp_path / "rest.kerfb", until=error.position - 1)
    store.close()
    assert (info.entries, info.last) == (got, got)
    assert inspect_bundle(tmp_path / "rest.kerfb") == info


def test_a_cut_leaves_more_the_later_it_is(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.kerf"
    size = sound.stat().st_size
    got = []
    for keep in range(4096, size, 4096):
        path.write_bytes(sound.read_bytes()[:keep])
        got.append(readable(path)[0])
    assert got == sorted(got)
    assert got[-1] > ENTRIES / 2


@pytest.mark.parametrize(
    ("damage", "position"),
    [
        ("DELETE FROM stored_events WHERE rowid = 50", 50),
        ("DELETE FROM stored_events WHERE rowid > 110", 111),
        ("UPDATE stored_events SET state = (SELECT state FROM stored_events WHERE rowid = 7) WHERE rowid = 8", 8),
        ("UPDATE stored_events SET chain = x'00' WHERE rowid = 33", 33),
        ("UPDATE stored_events SET state = NULL WHERE rowid = 2", 2),
        ("UPDATE stored_events SET chain = NULL WHERE rowid = 2", 2),
        ("UPDATE stored_events SET state = 1.5 WHERE rowid = 1", 1),
    ],
)
def test_what_was_changed_by_hand_shows_with_its_position(
    sound: Path, tmp_path: Path, damage: str, position: int
) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(damage)
    got, error = readable(path)
    assert isinstance(error, RecordCorrupt)
    assert (got, error.position) == (position - 1, position)
    assert "KERF109" in str(error)
    assert f"position {position}" in str(error)


@pytest.mark.parametrize(
    "change",
    ["epoch = 0", "position = 100", "position = 121", "id = 'x'", "chain = x'00'", "format = NULL", "seal = NULL"],
)
def test_a_changed_head_is_noticed_before_anything_is_written(sound: Path, tmp_path: Path, change: str) -> None:
    """The epoch fences old writers and the position says where the next turn goes: neither may be believed unsealed.
    The entries are still there to be read; only where they end is not sure."""
    path = Path(shutil.copy(sound, tmp_path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"UPDATE record SET {change}")
    with pytest.raises(RecordCorrupt):
        SQLiteStore(path, "write")
    got, error = readable(path)
    assert isinstance(error, RecordCorrupt)
    assert (got, error.position) == (ENTRIES, ENTRIES + 1)


def test_a_changed_blob_is_noticed(sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE blobs SET content = x'80', size = 1")
    store = SQLiteStore(path, "read")
    with pytest.raises(BlobCorrupt, match="KERF112"):
        store.blob(SHAPE)
    store.close()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(where=st.integers(0, 1 << 30), bit=st.integers(0, 7))
@example(where=0, bit=0)
@example(where=4147, bit=7)  # makes SQLite quote broken text in its message
def test_a_flipped_bit_is_harmless_or_found_where_it_is(sound: Path, tmp_path: Path, where: int, bit: int) -> None:
    """Whatever is read is what was written, up to where the reader is told that it ends."""
    content = bytearray(sound.read_bytes())
    content[where % len(content)] ^= 1 << bit
    path = tmp_path / "flipped.kerf"
    path.write_bytes(content)
    got, error = readable(path)
    if error is None:
        assert got == ENTRIES
    elif 0 < got < ENTRIES:
        assert isinstance(error, RecordCorrupt)
        assert error.position == got + 1


def test_no_moment_of_a_long_record_is_far_from_a_snapshot() -> None:
    """However long it is, and however they were thinned out on the way."""
    kept: list[int] = []
    for position in range(20_000, 5_000_001, 20_000):
        kept.append(position)
        kept = sorted({*kept} - {*crowded(kept)})
    assert all(after - before <= WIDEST_GAP for before, after in itertools.pairwise([0, *kept]))
    assert KEPT_SNAPSHOTS < len(kept) < 2.5 * 5_000_000 / WIDEST_GAP


# ── newer schemas ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_entries_of_a_newer_kerf_are_kept(tmp_path: Path) -> None:
    """An entry of a newer schema is unknown to this version, and is still the same when the newer one comes back."""
    path = tmp_path / "r.kerf"
    newer = Codec({**TYPES, "record.started": EntryType("record.started", 2, RecordStarted)})
    store = SQLiteStore(path, "create", codec=newer)
    entry = turn([RecordStarted("r-1", "9.0.0")], first=1).entries[0]
    store.append(Append((replace(entry, schema=2),), {}))
    store.close()
    store = SQLiteStore(path, "write")
    (unknown,) = store.scan()
    assert isinstance(unknown.payload, UnknownEntry)
    assert (unknown.payload.type, unknown.payload.schema) == ("record.started", 2)
    store.append(pods(2, 1))
    store.close()
    store = SQLiteStore(path, "read", codec=newer)
    assert next(store.scan()).payload == RecordStarted("r-1", "9.0.0")
    store.close()


def test_a_file_in_a_folder_that_is_not_there_is_a_coded_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"KERF113.*Make the folder first"):
        SQLiteStore(tmp_path / "no" / "record.kerf", "create")


# ── room ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cut_gives_the_file_systems_room_back(tmp_path: Path) -> None:
    """In short steps, so that a writer hardly waits."""
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    filled(store, 6_000)
    store.close()
    whole = (tmp_path / "r.kerf").stat().st_size
    store = SQLiteStore(tmp_path / "r.kerf", "write")
    before = store.size(0)
    cut(store, 5_000)
    assert store.size(0) < before / 2
    store.close()
    assert (tmp_path / "r.kerf").stat().st_size < whole / 2


def test_a_file_of_an_older_kerf_is_cut_too_and_shrinks_when_it_is_written_anew(tmp_path: Path) -> None:
    """It has no tables of a cut, and SQLite gives no room back."""
    path = tmp_path / "r.kerf"
    store = SQLiteStore(path, "create")
    filled(store, 6_000)
    entries = list(store.scan())
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        for table in ("cut", "bases", "history"):
            older.execute(f"DROP TABLE {table}")
        older.execute("PRAGMA journal_mode = DELETE")
        older.execute("PRAGMA auto_vacuum = NONE")
        older.execute("VACUUM")
        older.execute("PRAGMA journal_mode = WAL")
    reader = SQLiteStore(path, "read")
    assert (list(reader.scan()), reader.base(), reader.kept()) == (entries, None, None)
    reader.close()
    store = SQLiteStore(path, "write")
    whole = path.stat().st_size
    cut(store, 5_000)
    assert store.size(0) < whole / 2 < path.stat().st_size
    store.rebuild()
    assert [entry.position for entry in store.scan(5_000)] == list(range(5_001, 6_002))
    store.close()
    assert path.stat().st_size < whole / 2
