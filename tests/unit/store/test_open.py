"""A record is recognised by what it is, not by its name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.files.golden import GoldenStore, write_golden
from kerf.adapters.store.open import open_record
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.errors import NotARecord, RecordNotFound, StoreError, StoreReadOnly
from kerf.engine.record.store import Store
from tests.contract.store_contract import SHAPE, SHAPE_BYTES, pods


def test_each_form_is_recognised_and_reads_the_same(tmp_path: Path) -> None:
    written = open_record(tmp_path / "one", "create")
    written.append(pods(1, 5, blobs={SHAPE: SHAPE_BYTES}))
    export_bundle(written, tmp_path / "two")
    write_golden(written, tmp_path / "three")
    written.close()
    for name, kind in (("one", SQLiteStore), ("two", BundleStore), ("three", GoldenStore)):
        store: Store = open_record(tmp_path / name)
        assert type(store) is kind
        assert tuple(store.scan()) == pods(1, 5).entries
        assert store.blob(SHAPE) == SHAPE_BYTES
        assert store.last_position() == 5
        with pytest.raises(StoreReadOnly):
            store.append(pods(6, 1))
        store.close()


def test_only_a_sqlite_file_is_opened_for_writing(tmp_path: Path) -> None:
    written = open_record(tmp_path / "one", "create")
    export_bundle(written, tmp_path / "two")
    write_golden(written, tmp_path / "three")
    written.close()
    open_record(tmp_path / "one", "write").close()
    for name in ("two", "three"):
        with pytest.raises(StoreReadOnly):
            open_record(tmp_path / name, "write")


def test_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordNotFound):
        open_record(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(NotARecord):
            open_record(place)


def test_a_folder_that_holds_records_is_asked_about_them(tmp_path: Path) -> None:
    open_record(tmp_path / "one.kerf", "create").close()
    with pytest.raises(NotARecord) as refused:
        open_record(tmp_path)
    assert refused.value.hint == f"Is it {tmp_path / 'one.kerf'}?"


def test_no_name_and_a_device_are_called_what_they_are() -> None:
    """An unset variable of a shell is no folder, and /dev/null is there."""
    with pytest.raises(RecordNotFound, match="the name of the record is empty"):
        open_record("")
    with pytest.raises(NotARecord, match="a pipe or a device"):
        open_record("/dev/null")


def test_a_url_names_a_file_by_its_absolute_path(tmp_path: Path) -> None:
    open_record(f"sqlite://{tmp_path}/one.kerf", "create").close()
    store = open_record(f"sqlite://{tmp_path}/one.kerf")
    assert isinstance(store, SQLiteStore)
    assert store.path == tmp_path / "one.kerf"
    store.close()


def test_postgresql_without_its_package_is_a_coded_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kerf.adapters.store.postgres.store", None)
    with pytest.raises(StoreError, match=r"KERF100.*pip install '\.\[postgres\]'"):
        open_record("postgresql://nobody@127.0.0.1:1/none")
