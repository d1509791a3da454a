"""`--record` of the commands of make-believe: nothing is lost, and two never write one record."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.cli.simulate.new_record import new_record
from kerf.adapters.cli.simulate.runtime import DEMO_HOLDER, SIMULATE_HOLDER
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import RecordExists, StoreFull, StoreLocked, StoreReadOnly
from kerf.engine.record.observations import OfficeTaken, RecordStarted
from kerf.engine.record.store import Append
from tests.contract.store_contract import turn
from tests.support.repository import ROOT

WORKSHOP = str(ROOT / "docs/examples/workshop")


def made(path: Path, holder: str = SIMULATE_HOLDER, record: str = "first") -> bytes:
    with new_record(path, holder) as new:
        new.store.append(turn([RecordStarted(record, "0"), OfficeTaken(1, holder)], first=1))
    return path.read_bytes()


def first(path: Path) -> Entry:
    store = SQLiteStore(path, "read")
    try:
        return next(iter(store.scan()))
    finally:
        store.close()


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_record_is_in_its_place_when_it_is_whole(tmp_path: Path) -> None:
    record, said = tmp_path / "r.kerf", list[str]()
    before = made(record)
    with new_record(record, SIMULATE_HOLDER, said.append) as new:
        new.store.append(turn([RecordStarted("second", "0"), OfficeTaken(1, SIMULATE_HOLDER)], first=1))
        assert record.read_bytes() == before
    assert first(record).payload == RecordStarted("second", "0")
    assert names(tmp_path) == ["r.kerf"]
    assert len(said) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreFull("no room")])
def test_after_an_error_the_old_record_is_there(tmp_path: Path, error: BaseException) -> None:
    record = tmp_path / "r.kerf"
    before = made(record)
    with pytest.raises(type(error)), new_record(record, SIMULATE_HOLDER):
        raise error
    assert record.read_bytes() == before
    assert names(tmp_path) == ["r.kerf"]


def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    record = tmp_path / "r.kerf"
    with new_record(record, SIMULATE_HOLDER) as new:
        with pytest.raises(StoreLocked), new_record(record, SIMULATE_HOLDER):
            pass
        new.store.append(turn([RecordStarted("mine", "0")], first=1))
    assert first(record).payload == RecordStarted("mine", "0")


def test_what_a_killed_writer_left_is_cleared_away(tmp_path: Path) -> None:
    record, other = tmp_path / "r.kerf", tmp_path / "s.kerf"
    killed(record)
    killed(other)
    before = names(tmp_path)
    made(record)
    assert len(before) == 2
    assert len(names(tmp_path)) == 2  # that of the other record stays
    made(other)
    assert names(tmp_path) == ["r.kerf", "s.kerf"]


def killed(record: Path) -> None:
    """Kills a process that writes a record."""
    code = (
        "import os, signal; from pathlib import Path; from kerf.adapters.cli.simulate.new_record import new_record\n"
        f"with new_record(Path({str(record)!r}), 'x'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("holder", [DEMO_HOLDER, "kerf-controller-0"])
def test_a_record_that_is_not_of_an_earlier_run_stays(tmp_path: Path, holder: str) -> None:
    record = tmp_path / "r.kerf"
    before = made(record, holder)
    with pytest.raises(RecordExists), new_record(record, SIMULATE_HOLDER):
        pass
    assert record.read_bytes() == before


def test_a_damaged_record_stays(tmp_path: Path) -> None:
    record = tmp_path / "r.kerf"
    before = bytearray(made(record))
    at = before.index(b"kerf simulate")
    before[at] ^= 0x01
    record.write_bytes(before)
    with pytest.raises(RecordExists), new_record(record, SIMULATE_HOLDER):
        pass
    assert record.read_bytes() == before


def test_a_place_that_cannot_be_written_is_one_coded_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreReadOnly, match="KERF107"), new_record(tmp_path / "r.kerf", SIMULATE_HOLDER):
        pass


def test_a_simulation_of_nothing_leaves_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, bad = tmp_path / "r.kerf", tmp_path / "bad.yaml"
    before = made(record)
    bad.write_text("apiVersion: v1\nkind: Gizmo\nmetadata: {name: g}\n")
    assert main(["simulate", "/dev/null", "--record", str(record)]) == 1
    assert capsys.readouterr().err.startswith("KERF331: there is no document [/dev/null]. Give YAML or JSON")
    assert main(["simulate", str(bad), "--record", str(record)]) == 1
    assert "stays: no document was accepted" in capsys.readouterr().err
    assert record.read_bytes() == before


def test_a_full_disk_ends_a_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append, record = SQLiteStore.append, tmp_path / "r.kerf"

    def full(store: SQLiteStore, turn: Append) -> None:
        if turn.entries[0].position > 3:
            raise StoreFull("no room is left for the record")
        append(store, turn)

    monkeypatch.setattr(SQLiteStore, "append", full)
    assert main(["simulate", WORKSHOP, "--record", str(record)]) == 2
    assert capsys.readouterr().err.startswith("KERF105: ")
    assert names(tmp_path) == []


def test_no_name_is_no_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, "--record", ""]) == 2
    assert capsys.readouterr().err.startswith("KERF114: a record is a file")
