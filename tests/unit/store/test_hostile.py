"""Records and bundles that somebody wrote who means harm end in coded errors, with bounded memory and time."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.engine.record.observations import RecordStarted
from tests.support import hostile
from tests.support.repository import ROOT
from tests.support.slow import slow

MOST_MEMORY, MOST_SECONDS = 1_000_000_000, 20


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.sound_record(tmp_path_factory.mktemp("sound") / "sound.kerf")


def within_limits(*arguments: str) -> tuple[int, str]:
    """Runs kerf in a process that may take no more than issue 15 allows. Returns its exit code and what it said."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))

    done = subprocess.run(
        [sys.executable, "-m", "kerf", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=limit,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr + done.stdout


def test_the_sound_files_are_sound(tmp_path: Path, sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(hostile.SOUND)]) == main(["verify", str(sound)])
    again = hostile.exported(sound, tmp_path / "again.kerfb")
    assert main(["bundle", "inspect", str(again)]) == 0
    assert "KERF" not in capsys.readouterr().err


DAMAGED: list[Callable[[Path], Path]] = [
    hostile.without_frames,
    hostile.without_anything,
    hostile.without_tail,
    hostile.with_changed_blob,
    hostile.cut_off,
]


@pytest.mark.parametrize("make", DAMAGED)
def test_verify_checks_what_inspect_checks(
    tmp_path: Path, make: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = str(make(tmp_path / "b.kerfb"))
    assert main(["verify", bundle]) == 3
    assert "KERF109: " in capsys.readouterr().out
    assert main(["bundle", "inspect", bundle]) == 3
    assert capsys.readouterr().err.startswith("KERF109: ")


@pytest.mark.parametrize("make", [each for each in DAMAGED if each is not hostile.without_anything])
@pytest.mark.parametrize("question", [["status"], ["status", "--at", "+1m"], ["cost"], ["log"], ["diff", "start"]])
def test_questions_about_a_damaged_bundle_say_so(
    tmp_path: Path, make: Callable[[Path], Path], question: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A lost tail was called a defect of kerf, since the header still names the entries."""
    command, *flags = question
    code = main([command, str(make(tmp_path / "b.kerfb")), *flags])
    said = capsys.readouterr()
    assert code in (0, 3)  # what comes before the damage may be answered
    assert ("KERF109: " in said.err or "KERF112: " in said.err) == (code == 3), said.err


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE blobs SET content = zeroblob(length(content)) WHERE rowid = 1",
        "UPDATE stored_events SET state = x'90' WHERE rowid = 7",
        "DELETE FROM stored_events WHERE rowid > 20",
        "UPDATE record SET seal = x'00'",
    ],
)
def test_verify_checks_all_of_a_record(
    tmp_path: Path, sound: Path, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = hostile.sqlite_with(tmp_path / "r.kerf", sound, statement)
    assert main(["verify", str(record)]) == 3
    assert "the record is corrupt" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["blobs", *slow("entries", "history", "base")])
def test_bombs_take_no_memory(tmp_path: Path, kind: str) -> None:
    bundle = hostile.bomb(tmp_path / "b.kerfb", kind)
    assert bundle.stat().st_size < 1_000_000
    code, said = within_limits("verify", str(bundle))
    assert (code, "its frames would be larger" in said) == (3, True), said


@pytest.mark.parametrize("make", slow(hostile.list_of_nothing, hostile.many_bombs))
def test_lists_and_totals_have_caps(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    code, said = within_limits("verify", str(make(tmp_path / "b.kerfb")))
    assert (code, "KERF109" in said) == (3, True), said


@pytest.mark.parametrize("what", ["a view as record", *slow(*list(hostile.STRANGE)[1:])])
def test_a_database_that_is_more_than_tables_is_refused(tmp_path: Path, sound: Path, what: str) -> None:
    record = hostile.sqlite_with(tmp_path / "r.kerf", sound, *hostile.STRANGE[what])
    code, said = within_limits("verify", str(record))
    assert code == 2, said
    assert said.startswith("KERF108: this SQLite file is not a record: ")


def test_nothing_is_written_into_a_database_with_a_trigger(tmp_path: Path, sound: Path) -> None:
    record = hostile.sqlite_with(tmp_path / "r.kerf", sound, *hostile.STRANGE["a trigger"])
    before = record.read_bytes()
    assert main(["store", "prune", str(record), "--observations", "1h"]) == 2
    assert record.read_bytes() == before


STARTED = hostile.entry(payload=b"\x82\xa6record\xa1r\xa6engine\xa10")


@pytest.mark.parametrize(
    "encoded",
    [
        hostile.entry(payload=hostile.deep()),
        hostile.entry(payload=hostile.deep(), type="nobody.knows"),
        hostile.entry(payload=b"\x81\xa6record\xa2\xff\xfe"),
        hostile.entry(stream=b"\xa2\xff\xfe"),
        hostile.entry(at=2**63),
        hostile.entry(at=253_402_300_800_000),
        hostile.entry(at=-1),
        hostile.entry(position=2**63),
        hostile.entry(schema=2**40),
        hostile.entry(schema=-1),
        b"\xc1",
        b"",
        hostile.deep(),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["verify", "at", "log", "explain"])
def test_entries_that_cannot_be_read_are_coded_errors(
    tmp_path: Path, encoded: bytes, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = str(hostile.bundle_of(tmp_path / "b.kerfb", encoded or b"\xc0"))
    code = main([command, bundle, *(["decision", "1.0"] if command == "explain" else [])])
    assert code in (0, 2, 3, 4)
    assert "KERF001" not in capsys.readouterr().err


def test_a_sound_entry_made_by_hand_is_read(tmp_path: Path) -> None:
    from kerf.adapters.store.files.bundle import BundleStore

    store = BundleStore(hostile.bundle_of(tmp_path / "b.kerfb", STARTED))
    store.check()
    assert [entry.payload for entry in store.scan()] == [RecordStarted("r", "0")]
