"""What kerf writes, it writes whole and privately, and it touches nothing that it did not make."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.files.private_files import private_folder, regular_file, write_whole
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.errors import RecordExists, SpecialFile, StoreError
from tests.support.repository import ROOT

RECORD = str(ROOT / "tests/records/0.1.0/golden-no-capacity.kerfb")
WORKSHOP = str(ROOT / "docs/examples/workshop")


def link(path: Path) -> None:
    path.symlink_to(path.parent / "precious")


def dangling(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


SPECIAL = [link, dangling, pipe, listening]


def tree(folder: Path) -> dict[str, object]:
    """All that is in a folder, with kinds and contents."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IFMT(path.lstat().st_mode),
            path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else None,
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "precious").write_text("the user's")
    return tmp_path / "out"


COMMANDS: list[Callable[[Path], list[str]]] = [
    lambda path: ["bundle", "export", RECORD, str(path)],
    lambda path: ["simulate", WORKSHOP, "--quiet", "--until", "1m", "--record", str(path)],
]


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_links_and_special_files(
    place: Path,
    command: Callable[[Path], list[str]],
    special: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    special(place)
    before = tree(place.parent)
    assert main(command(place)) == 2
    assert capsys.readouterr().err.startswith("KERF119: ")
    assert tree(place.parent) == before


def folder_with_files(path: Path) -> None:
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "photo").write_text("the only one")
    (path / "letter").write_text("dear")


def link_to_folder(path: Path) -> None:
    folder_with_files(path.parent / "home")
    path.symlink_to(path.parent / "home")


@pytest.mark.parametrize("special", [*SPECIAL, folder_with_files, link_to_folder])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_at_the_part_name_of_old_stays(
    place: Path, command: Callable[[Path], list[str]], special: Callable[[Path], None]
) -> None:
    special(place.with_name("out.part"))
    before = tree(place.parent)
    assert main(command(place)) == 0
    after = tree(place.parent)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert after.pop("out")
    assert after == before


@pytest.mark.parametrize("name", ["record.jsonl", "decisions.jsonl", "blobs.jsonl", "README.md"])
def test_a_golden_folder_writes_through_no_link(place: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    place.mkdir()
    (place / name).symlink_to(place.parent / "nothing")
    assert main(["bundle", "golden", RECORD, str(place), "--guards", "x"]) == 2
    assert capsys.readouterr().err.startswith("KERF119: ")
    assert not (place.parent / "nothing").exists()
    assert (place / name).is_symlink()


def test_logs_that_nobody_owns_stay(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = place.with_name("out-wal")
    log.write_text("the user's")
    assert main(["simulate", WORKSHOP, "--quiet", "--until", "1m", "--record", str(place)]) == 2
    assert capsys.readouterr().err.startswith("KERF114: a log without its record")
    assert log.read_text() == "the user's"


@pytest.mark.parametrize("special", SPECIAL)
def test_a_controllers_record_is_made_through_no_link(place: Path, special: Callable[[Path], None]) -> None:
    special(place)
    before = tree(place.parent)
    with pytest.raises(SpecialFile, match="KERF119"):
        SQLiteStore(place, "create")
    assert tree(place.parent) == before


def test_a_controllers_record_is_for_its_owner(place: Path) -> None:
    SQLiteStore(place, "create").close()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_file_is_written_whole_or_not_at_all(place: Path) -> None:
    write_whole(place, b"one", b" two")
    with pytest.raises(RecordExists):
        write_whole(place, b"three")
    assert place.read_bytes() == b"one two"
    write_whole(place, b"three", replace=True)
    assert place.read_bytes() == b"three"
    assert list(tree(place.parent)) == ["out", "precious"]


def test_a_file_that_comes_meanwhile_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: place.write_text("the user's"))
    with pytest.raises(RecordExists):
        write_whole(place, b"kerf's")
    assert place.read_text() == "the user's"
    assert list(tree(place.parent)) == ["out", "precious"]


def test_without_hard_links_files_are_written_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_whole(place, b"one")
    assert place.read_bytes() == b"one"
    with pytest.raises(RecordExists):
        write_whole(place, b"two")


def test_a_folder_with_a_file_of_somebody_else_stays(place: Path) -> None:
    with private_folder(place) as fresh:
        fresh.write_text("kerf's")
        (fresh.parent / "letter").write_text("dear")
    assert (fresh.parent / "letter").read_text() == "dear"
    assert fresh.read_text() == "kerf's"


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127])
def test_the_longest_names_can_be_written(place: Path, name: str) -> None:
    write_whole(place.with_name(name), b"one")
    assert regular_file(place.with_name(name)) is not None


def test_a_name_that_is_too_long_is_one_coded_error(place: Path) -> None:
    with pytest.raises(StoreError, match=r"KERF100: .*File name too long"):
        write_whole(place.with_name("x" * 300), b"one")
