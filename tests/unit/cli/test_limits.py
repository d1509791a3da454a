"""What a file may take is bounded by its size, and `--no-limits` lifts the bound."""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

import pytest

from kerf.adapters.cli import limits
from kerf.adapters.cli.limits import LimitReached, limited
from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from tests.support import hostile

COUNT_FOR_EVER = f"{hostile.FOR_EVER} SELECT count(*) FROM t"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory by RLIMIT_DATA")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return hostile.sound_record(tmp_path / "sound.kerf")


@pytest.fixture
def hardly_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.05)
    monkeypatch.setattr(limits, "SECONDS_PER_MEGABYTE", 0)


def nothing_is_limited() -> bool:
    return signal.getitimer(signal.ITIMER_PROF)[0] == 0 and signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def swallowing(times: int) -> None:
    """Works until it is interrupted for the last of so many times."""
    try:
        while True:
            pass
    except KeyboardInterrupt:
        if times == 1:
            raise
    swallowing(times - 1)


@pytest.mark.usefixtures("hardly_any_time")
def test_a_statement_without_end_is_ended(file: Path) -> None:
    store = SQLiteStore(file, "read")
    with pytest.raises(LimitReached, match=r"KERF128.*CPU time"), limited(file), store.session() as session:
        session.run(COUNT_FOR_EVER)
    store.close()
    assert nothing_is_limited()


@pytest.mark.usefixtures("hardly_any_time")
def test_time_that_is_over_is_told_again_if_something_swallows_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_AGAIN", 0.05)
    with pytest.raises(LimitReached), limited(file):
        swallowing(3)
    assert nothing_is_limited()


@pytest.mark.usefixtures("hardly_any_time")
def test_a_command_says_so_and_its_flag_lifts_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = str(hostile.many_entries(tmp_path / "b.kerfb", 1_000))
    assert main(["verify", bundle]) == 2
    assert capsys.readouterr().err.startswith("KERF128: a file of this size may not take more than 0 s of CPU time")
    diverged = 1
    assert main(["--no-limits", "verify", bundle]) == diverged
    assert capsys.readouterr().err == ""
    assert nothing_is_limited()


def test_ctrl_c_is_still_ctrl_c(file: Path) -> None:
    with pytest.raises(KeyboardInterrupt), limited(file):
        raise KeyboardInterrupt
    assert nothing_is_limited()


@ON_LINUX
def test_memory_is_limited_and_given_back(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    monkeypatch.setattr(limits, "MEGABYTES", 20)
    with pytest.raises(LimitReached, match=r"KERF128.* 2\d MB of memory.*--no-limits"), limited(file):
        bytearray(100 << 20)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(bytearray(100 << 20)) == 100 << 20


@ON_LINUX
def test_large_collections_end_within_their_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "MEGABYTES", 150)
    bundle = hostile.collections(tmp_path / "b.kerfb", items=5_000_000)
    assert main(["bundle", "export", str(bundle), str(tmp_path / "c.kerfb")]) == 2
    assert "KERF128: a file of this size may not take more than 1" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["b.kerfb"]


def test_what_is_larger_may_take_more(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "golden"
    folder.mkdir()
    (folder / "entries.jsonl").write_bytes(bytes(5000))
    (folder / "README.md").write_bytes(bytes(50))
    log = Path(f"{file}-wal")
    before = file.stat().st_size
    log.write_bytes(bytes(70))
    assert limits._size(file) == before + 70
    assert limits._size(folder) == 5050
    assert limits._size(hostile.SOUND) == 13 * hostile.SOUND.stat().st_size
