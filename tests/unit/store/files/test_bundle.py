"""Bundles: what goes in comes out, and no byte of one can be changed unnoticed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from kerf.adapters.store.files import bundle_frames
from kerf.adapters.store.files.bundle import BundleStore, export_bundle, inspect_bundle
from kerf.adapters.store.files.bundle_format import BundleInfo
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import (
    BlobMissing,
    FormatUnsupported,
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreError,
    StoreReadOnly,
)
from kerf.engine.record.observations import RecordStarted
from tests.contract.store_contract import SHAPE, SHAPE_BYTES, UNKNOWN, pods, turn


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    store.append(turn([RecordStarted("r-1", "0.1.0"), UNKNOWN], first=1))
    store.append(pods(3, 10, epoch=3, blobs={SHAPE: SHAPE_BYTES}))
    return store


def all_of(store: SQLiteStore | BundleStore, after: int = 0, until: int | None = None) -> list[Entry]:
    return list(store.scan(after, until))


def test_a_bundle_holds_the_same_record(store: SQLiteStore, tmp_path: Path) -> None:
    info = export_bundle(store, tmp_path / "b.kerfb", created=5)
    bundled = BundleStore(tmp_path / "b.kerfb")
    assert all_of(bundled) == all_of(store)
    assert list(bundled.encoded()) == list(store.encoded())
    assert bundled.blob(SHAPE) == SHAPE_BYTES
    assert (bundled.record_id, bundled.last_position(), bundled.epoch()) == ("r-1", 12, 3)
    assert bundled.checkpoint(7) == store.checkpoint(7)
    assert info == inspect_bundle(tmp_path / "b.kerfb")
    assert info == BundleInfo(
        format=1,
        record="r-1",
        engine=info.engine,
        created=5,
        first=1,
        last=12,
        epoch=3,
        entries=12,
        blobs=1,
        missing=0,
        chain_before="00" * 16,
        chain=store.checkpoint().value.hex(),
        sanitised=False,
        unknown=1,
    )


@pytest.mark.parametrize(("after", "until"), [(0, 4), (5, 9), (11, None), (2, 99), (12, None), (40, None)])
def test_a_range_keeps_its_positions_and_its_place_in_the_chain(
    store: SQLiteStore, tmp_path: Path, after: int, until: int | None
) -> None:
    info = export_bundle(store, tmp_path / "b.kerfb", after=after, until=until)
    bundled = BundleStore(tmp_path / "b.kerfb")
    assert all_of(bundled) == all_of(store, after, until)
    assert info.entries == len(all_of(bundled))
    assert info.chain_before == store.checkpoint(min(after, 12)).value.hex()
    assert info.chain == store.checkpoint(info.last).value.hex()
    again = export_bundle(bundled, tmp_path / "again.kerfb", created=info.created)
    assert again == info


def test_scans_cross_frames(store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_frames, "FRAME_ENTRIES", 5)
    export_bundle(store, tmp_path / "b.kerfb")
    bundled = BundleStore(tmp_path / "b.kerfb")
    for after in range(13):
        for until in (*range(14), None):
            assert all_of(bundled, after, until) == all_of(store, after, until)


def test_an_empty_record_makes_an_empty_bundle(tmp_path: Path) -> None:
    empty = SQLiteStore(tmp_path / "e.kerf", "create")
    info = export_bundle(empty, tmp_path / "e.kerfb")
    assert (info.first, info.last, info.entries) == (1, 0, 0)
    assert all_of(BundleStore(tmp_path / "e.kerfb")) == []


def test_a_lost_blob_is_counted_and_does_not_stop_the_export(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    store.append(pods(1, 2))
    assert export_bundle(store, tmp_path / "b.kerfb").missing == 1
    with pytest.raises(BlobMissing):
        BundleStore(tmp_path / "b.kerfb").blob(SHAPE)


def test_a_bundle_never_replaces_a_file(store: SQLiteStore, tmp_path: Path) -> None:
    with pytest.raises(RecordExists):
        export_bundle(store, store.path)
    assert len(all_of(store)) == 12


def test_a_bundle_is_read_only(store: SQLiteStore, tmp_path: Path) -> None:
    export_bundle(store, tmp_path / "b.kerfb")
    bundled = BundleStore(tmp_path / "b.kerfb")
    with pytest.raises(StoreReadOnly):
        bundled.append(pods(13, 1))
    with pytest.raises(StoreReadOnly):
        bundled.put_snapshot(1, "s", b"", "")
    assert bundled.snapshot(None, "s") is None


def test_every_flipped_byte_is_found(store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is read before the damage is what was written."""
    monkeypatch.setattr(bundle_frames, "FRAME_ENTRIES", 4)
    path, original = tmp_path / "b.kerfb", all_of(store)
    export_bundle(store, path)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        with pytest.raises((RecordCorrupt, NotARecord, FormatUnsupported)):
            inspect_bundle(path)
        entries: list[Entry] = []
        with suppress(StoreError):
            entries.extend(BundleStore(path).scan())
        assert entries == original[: len(entries)]


@pytest.mark.parametrize("keep", [0, 5, 12, 300, -1, -100])
def test_a_bundle_that_was_cut_off(store: SQLiteStore, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "b.kerfb"
    export_bundle(store, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises((RecordCorrupt, NotARecord)):
        inspect_bundle(path)


def test_what_comes_before_a_damaged_frame_is_readable(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_frames, "FRAME_ENTRIES", 4)
    path = tmp_path / "b.kerfb"
    export_bundle(store, path)
    third, offset = BundleStore(path)._frames[2]
    content = bytearray(path.read_bytes())
    content[offset + third.length // 2] ^= 1
    path.write_bytes(content)
    scan = BundleStore(path).scan()
    assert [next(scan).position for _ in range(8)] == list(range(1, 9))
    with pytest.raises(RecordCorrupt, match="position 9") as caught:
        next(scan)
    assert caught.value.position == 9


def test_something_behind_the_end_is_found(store: SQLiteStore, tmp_path: Path) -> None:
    path = tmp_path / "b.kerfb"
    export_bundle(store, path)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(RecordCorrupt, match="behind the last frame"):
        inspect_bundle(path)


def test_what_is_not_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(RecordNotFound):
        BundleStore(tmp_path / "none.kerfb")
    (tmp_path / "text").write_text("hello, this is not a bundle")
    with pytest.raises(NotARecord):
        BundleStore(tmp_path / "text")
