"""`kerf bundle`: parts of a record as files, which are records too."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.store.files.golden import write_golden
from kerf.adapters.store.sqlite.store import SQLiteStore


def test_a_bundle_of_nothing_is_not_made(kerf: Any, record: Path, tmp_path: Path) -> None:
    code, _, err = kerf("bundle", "export", record, tmp_path / "x.kerfb", "--since", "13", "--until", "3")
    assert (code, (tmp_path / "x.kerfb").exists()) == (2, False)
    assert err.startswith("KERF202: --since 13 is later than --until 3")


def test_a_record_without_a_file_to_write_is_told_what_is_missing(
    kerf: Any, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERF_STORE", raising=False)
    code, _, err = kerf("bundle", "export", record)
    assert (code, "Write kerf bundle export RECORD FILE" in err) == (2, True)


def test_a_part_misses_nothing_that_the_record_has(kerf: Any, record: Path, tmp_path: Path) -> None:
    """A base names hashes that are no blobs: these are not missing."""
    code, out, _ = kerf("bundle", "export", record, tmp_path / "x.kerfb", "--since", "20", "--json")
    assert (code, json.loads(out)["missing"]) == (0, 0)


def test_bundles_are_records_too(kerf: Any, record: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "life.kerfb"
    code, out, _ = kerf("bundle", "export", record, bundle, "--pseudonymise", "--json")
    assert code == 0
    info = json.loads(out)
    assert (info["first"], info["sanitised"]) == (1, True)
    assert json.loads(kerf("bundle", "inspect", bundle, "--json")[1]) == info
    shown = kerf("bundle", "inspect", bundle)[1]
    assert ("left out, for their names" in shown) == bool(info["missing"]), "that is on purpose, and no loss"
    assert "missing in the source" not in shown
    assert kerf("verify", bundle)[0] == 0, "names decide the order of equals, and pseudonyms keep it"
    assert "default/a" not in kerf("log", bundle, "--all")[1]


def test_a_plain_bundle_verifies(kerf: Any, record: Path, tmp_path: Path) -> None:
    kerf("bundle", "export", record, tmp_path / "plain.kerfb")
    assert kerf("verify", tmp_path / "plain.kerfb")[0] == 0


def test_a_part_ends_where_a_turn_ends(kerf: Any, record: Path, tmp_path: Path) -> None:
    """Half a turn would be decided otherwise: verify called that a divergence."""
    with_store = SQLiteStore(record, "read")
    turns = [entry.turn for entry in with_store.scan()]
    with_store.close()
    for until in range(1, len(turns) + 1):
        part = tmp_path / f"{until}.kerfb"
        code, out, _ = kerf("bundle", "export", record, part, "--until", until, "--json")
        ends = max(position for position, turn in enumerate(turns, 1) if turn == turns[until - 1])
        assert (code, json.loads(out)["last"]) == (0, ends)
        assert kerf("verify", part)[0] == 0


def test_a_turn_whose_end_is_damaged_is_left_out(kerf: Any, record: Path, tmp_path: Path) -> None:
    with_store = SQLiteStore(record, "read")
    turns = [entry.turn for entry in with_store.scan()]
    with_store.close()
    damaged = next(position for position, turn in enumerate(turns, 1) if position > turn > 10)
    record = Path(shutil.copy(record, tmp_path / "damaged.kerf"))
    with closing(sqlite3.connect(record)) as database:
        database.execute("UPDATE stored_events SET state = x'00' WHERE rowid = ?", (damaged,))
        database.commit()
    code, _, err = kerf("log", record)
    assert (code, f"--until {damaged - 1}" in err) == (3, True)
    code, out, _ = kerf("bundle", "export", record, tmp_path / "x.kerfb", "--until", damaged - 1, "--json")
    assert (code, json.loads(out)["last"]) == (0, turns[damaged - 1] - 1)
    assert kerf("verify", tmp_path / "x.kerfb")[0] == 0


def test_golden_folders_are_records_too(kerf: Any, record: Path, tmp_path: Path) -> None:
    with_store = SQLiteStore(record, "read")
    write_golden(with_store, tmp_path / "case")
    with_store.close()
    assert kerf("verify", tmp_path / "case")[0] == 0
    assert kerf("at", tmp_path / "case")[0] == 0


def _disk_of(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Files take so many bytes in all, and then fail as a full disk does."""

    class File(io.FileIO):
        def write(self, data: Any) -> int:
            nonlocal room
            taken = super().write(bytes(data)[:room]) if room else 0
            room -= taken
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
            return taken

    monkeypatch.setattr(os, "fdopen", lambda descriptor, mode: io.BufferedWriter(File(descriptor, mode)))


@pytest.mark.parametrize(("command", "room"), [("export", 0), ("export", 200), ("golden", 0), ("golden", 8_000)])
def test_a_full_disk_is_one_coded_line_and_leaves_nothing(
    kerf: Any, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, room: int
) -> None:
    _disk_of(monkeypatch, room)
    guards = ["--guards", "g"] if command == "golden" else []
    code, out, err = kerf("bundle", command, record, tmp_path / "new", *guards)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("KERF105: ")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_one_coded_line(kerf: Any, record: Path, tmp_path: Path) -> None:
    code, _, err = kerf("bundle", "export", record, tmp_path / "no" / "x.kerfb")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("KERF113: ")
    (tmp_path / "file").write_text("mine")
    code, _, err = kerf("bundle", "golden", record, tmp_path / "file" / "case", "--guards", "g")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("KERF100: ")
