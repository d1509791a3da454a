"""Golden folders: readable, stable under git, and the same record when read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from kerf.adapters.store.files.golden import GoldenStore, write_golden
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, DisruptResult, Verdict
from kerf.engine.record.errors import (
    BlobCorrupt,
    BlobMissing,
    NotARecord,
    RecordCorrupt,
    RecordExists,
    StoreReadOnly,
)
from kerf.engine.record.observations import RecordStarted
from tests.contract.store_contract import AT, SHAPE, SHAPE_BYTES, UNKNOWN, pods, turn

VERDICT = Verdict("web-abc", "empty", "remove", Reason("EMPTY", {"since": 12.5, "pods": ["a", "b"]}))
DECISION = Decision("disrupt", 3, AT, 1, "0" * 32, DisruptResult((VERDICT,)))


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    store.append(turn([RecordStarted("r-1", "0.1.0"), UNKNOWN], first=1))
    store.append(turn([pods(3, 1).entries[0].payload, DECISION], first=3, epoch=2, blobs={SHAPE: SHAPE_BYTES}))
    store.append(pods(5, 2, epoch=2))
    return store


@pytest.fixture
def folder(store: SQLiteStore, tmp_path: Path) -> Path:
    write_golden(store, tmp_path / "case")
    return tmp_path / "case"


def test_a_golden_folder_holds_the_same_record(store: SQLiteStore, folder: Path) -> None:
    golden = GoldenStore(folder)
    assert list(golden.scan()) == list(store.scan())
    assert list(golden.scan(2, 5)) == list(store.scan(2, 5))
    assert list(golden.encoded()) == list(store.encoded())
    assert golden.blob(SHAPE) == SHAPE_BYTES
    assert (golden.record_id, golden.last_position(), golden.epoch()) == ("r-1", 6, 2)
    assert golden.checkpoint(6) == store.checkpoint()


def test_decisions_stand_apart_and_all_is_readable(folder: Path) -> None:
    record = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    decisions = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
    blobs = [json.loads(line) for line in (folder / "blobs.jsonl").read_text().splitlines()]
    assert [line["position"] for line in record] == [1, 2, 3, 5, 6]
    assert [line["position"] for line in decisions] == [4]
    assert record[0]["at"].startswith("2023-11-14T22:13:20.001")
    assert list(record[0]) == [
        "position", "turn", "stream", "version", "type", "schema", "at", "cause", "epoch", "payload",
    ]  # fmt: skip
    assert record[1]["payload"] == {"phase": "full", "of": [1, 2.5, None]}
    assert decisions[0]["payload"]["result"]["verdicts"][0]["reason"]["params"] == {"pods": ["a", "b"], "since": 12.5}
    assert blobs == [{"digest": SHAPE, "content": json.loads((folder / "blobs.jsonl").read_text())["content"]}]
    assert blobs[0]["content"]["labels"] == {"app": "web"}


def test_writing_what_was_read_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    write_golden(GoldenStore(folder), tmp_path / "again")
    for name in ("record.jsonl", "decisions.jsonl", "blobs.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_a_range(store: SQLiteStore, tmp_path: Path) -> None:
    write_golden(store, tmp_path / "range", after=2, until=5)
    golden = GoldenStore(tmp_path / "range")
    assert list(golden.scan()) == list(store.scan(2, 5))
    assert (golden.first_position(), golden.last_position()) == (3, 5)


def test_a_golden_folder_is_never_overwritten(store: SQLiteStore, folder: Path) -> None:
    with pytest.raises(RecordExists):
        write_golden(store, folder)


def test_it_is_read_only_and_without_snapshots(folder: Path) -> None:
    golden = GoldenStore(folder)
    with pytest.raises(StoreReadOnly):
        golden.append(pods(7, 1))
    assert golden.snapshot(None, "s") is None
    with pytest.raises(BlobMissing):
        golden.blob("0" * 32)


def test_a_folder_without_a_record(tmp_path: Path) -> None:
    with pytest.raises(NotARecord):
        GoldenStore(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"position":3', '"position":"three"'),
        ('"cause":0,', ""),
        ('"cause":0,', '"cause":0,"color":"red",'),
        ('"epoch":2,"payload":{', '"epoch":2,"payload":'),
        ('"position":3', '"position":5'),
        ('"type":"pod.seen"', '"type":"decision.made"'),
    ],
)
def test_a_wrong_line_is_named(folder: Path, old: str, new: str) -> None:
    path = folder / "record.jsonl"
    lines = path.read_text().splitlines()
    assert old in lines[2]
    lines[2] = lines[2].replace(old, new)
    path.write_text("\n".join(lines))
    with pytest.raises(RecordCorrupt, match=r"record.jsonl, line [34]"):
        GoldenStore(folder)


def test_a_missing_line_is_named_by_its_position(folder: Path) -> None:
    (folder / "decisions.jsonl").write_text("")
    with pytest.raises(RecordCorrupt, match="position 4"):
        GoldenStore(folder)


def test_an_edited_blob_needs_its_new_digest(folder: Path) -> None:
    path = folder / "blobs.jsonl"
    path.write_text(path.read_text().replace("web", "api"))
    with pytest.raises(BlobCorrupt, match=r"blobs.jsonl, line 1.*the digest|the digest.*blobs.jsonl, line 1"):
        GoldenStore(folder)


def test_a_line_edited_by_hand_is_what_is_read(folder: Path) -> None:
    """Golden records are written and changed by people: fields may stand in any order."""
    path = folder / "record.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2]["payload"]["$wide"]["name"] = "renamed"
    path.write_text("\n".join(json.dumps(line, sort_keys=True) for line in lines) + "\n\n")
    edited = list(GoldenStore(folder).scan())[2]
    assert edited.payload == replace(pods(3, 1).entries[0].payload, name="renamed")


def test_objects_of_many_fields_are_readable_and_may_be_written_without_their_wrapper(folder: Path) -> None:
    """msgspec packs them with the long header of a map."""
    path = folder / "record.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[2]["payload"]["$wide"]["uid"]
    lines[2]["payload"] = lines[2]["payload"]["$wide"]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert list(GoldenStore(folder).scan())[2].payload == pods(3, 1).entries[0].payload


@pytest.mark.parametrize("payload", [[1], "x", {str(n): n for n in range(16)}])
def test_a_wide_object_is_one_of_few_keys(folder: Path, payload: object) -> None:
    path = folder / "record.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2]["payload"] = {"$wide": payload}
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    with pytest.raises(RecordCorrupt, match="line 3"):
        GoldenStore(folder)


def test_bytes_that_json_cannot_hold_are_kept(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "n.kerf", "create")
    nan = replace(DECISION, result=DisruptResult((replace(VERDICT, reason=Reason("X", {"v": float("nan")})),)))
    store.append(turn([nan], first=1))
    write_golden(store, tmp_path / "nan")
    assert "$msgpack" in (tmp_path / "nan" / "decisions.jsonl").read_text()
    assert list(GoldenStore(tmp_path / "nan").encoded()) == list(store.encoded())
