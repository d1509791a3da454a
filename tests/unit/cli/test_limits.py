"""What a file may take is bounded by its size, and `--no-limits` lifts the bound."""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

import pytest

from kerf.adapters.cli import limits, records
from kerf.adapters.cli.limits import LimitReached, limited
from kerf.adapters.cli.main import main
from kerf.adapters.store.files.bundle_format import MAGIC
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
    monkeypatch.setattr(limits, "TO_READ", 0)
    monkeypatch.setattr(limits, "TO_DECIDE", 0)


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
    bundle = str(hostile.many_entries(tmp_path / "b.kerfb", 20_000))
    assert main(["verify", bundle]) == 2
    assert capsys.readouterr().err.startswith("KERF128: a file of this size may not take more than 0 s of CPU time")
    diverged = 1
    assert main(["--no-limits", "verify", bundle]) == diverged
    assert capsys.readouterr().err == ""
    assert nothing_is_limited()


@pytest.fixture(scope="module")
def long_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough to take time on any machine: limits are counted in ticks of some milliseconds."""
    return hostile.many_entries(tmp_path_factory.mktemp("long") / "b.kerfb", 50_000)


@pytest.mark.parametrize(
    "command",
    [
        ("at", "RECORD"), ("bundle", "export", "RECORD", "NEW"), ("bundle", "golden", "RECORD", "NEW", "--guards", "x"),
        ("bundle", "inspect", "RECORD"), ("capacity", "RECORD"), ("check", "POLICY", "RECORD"), ("churn", "RECORD"),
        ("cost", "RECORD"), ("diff", "RECORD", "start"), ("evictions", "RECORD"), ("explain", "RECORD", "pod/u"),
        ("export", "RECORD", "--csv", "NEW"), ("log", "RECORD"), ("log", "RECORD", "--karpenter"),
        ("observe", "report", "RECORD"), ("replay", "RECORD"), ("sql", "select 1", "RECORD"), ("status", "RECORD"),
        ("story", "RECORD", "pod/u"), ("verify", "RECORD"), ("whatif", "RECORD", "--price", "m5.large=1"),
    ],
)  # fmt: skip
# Time may be over just when a file is opened. It is closed then as garbage, and the process ends anyway.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("hardly_any_time")
def test_each_command_that_reads_a_record_has_limits(
    command: tuple[str, ...],
    long_bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.001)
    policy, new = tmp_path / "policy.yaml", tmp_path / "new"
    policy.write_text("policy: [{no_loop: true}]")
    places = {"RECORD": str(long_bundle), "POLICY": str(policy), "NEW": str(new)}
    assert main([places.get(word, word) for word in command]) == 2
    assert "KERF128: " in capsys.readouterr().err
    assert not new.exists()
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


@pytest.mark.slow
@ON_LINUX
def test_large_collections_end_within_their_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "MEGABYTES", 150)
    bundle = hostile.collections(tmp_path / "b.kerfb", items=5_000_000)
    assert main(["bundle", "export", str(bundle), str(tmp_path / "c.kerfb")]) == 2
    assert "KERF128: a file of this size may not take more than 1" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["b.kerfb"]


@pytest.mark.parametrize(
    ("size", "magic", "to_read", "to_decide"),
    [
        (0, b"", 20, 20),
        (100_000, MAGIC, 20, 20),
        (1_300_000, b"", 20, 20),
        (335_000, MAGIC, 20, 62),
        (4_600_000, b"", 20, 66),
        (10_000_000, MAGIC, 248, 1860),
    ],
)
def test_small_files_get_20_s_and_large_ones_as_long_as_they_need(
    tmp_path: Path, size: int, magic: bytes, to_read: float, to_decide: float
) -> None:
    file = tmp_path / "f"
    with file.open("wb") as sparse:
        sparse.write(magic)
        sparse.truncate(size)
    assert limits.allowed_seconds([file], decides=False) == pytest.approx(to_read, abs=1)
    assert limits.allowed_seconds([file], decides=True) == pytest.approx(to_decide, abs=1)


class Clock:
    """CPU time that passes as a test says. The first part of a work in a large file has begun when it is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, allowed: float) -> None:
        self.now = 1.0
        monkeypatch.setattr(limits, "process_time", lambda: self.now)
        self.time = limits._Time(allowed)
        self.time.told(0.0)

    def passes(self, seconds: int, share: float | None = None) -> None:
        """Each second, with the share that is done by then."""
        for _ in range(seconds):
            self.now += 1
            if share is not None:
                self.time.told(share)
        self.time.passes(0, None)


def test_a_large_file_gets_its_time_while_it_is_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, allowed=60)
    for second in range(20, 60):
        clock.passes(20 if second == 20 else 1, second / 70)
    with pytest.raises(KeyboardInterrupt):
        clock.passes(1, 0.99)
    assert clock.time.over == 60


def test_who_is_far_too_slow_to_end_gets_20_s(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, allowed=60)
    with pytest.raises(KeyboardInterrupt):
        clock.passes(20, 0.05)
    assert clock.time.over == 20


def test_who_gets_stuck_gets_20_s_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the share that came before."""
    clock = Clock(monkeypatch, allowed=60)
    clock.passes(1, 0.99)
    clock.passes(19)
    with pytest.raises(KeyboardInterrupt):
        clock.passes(2)
    assert clock.time.over == 22


def test_verify_tells_how_much_is_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[float] = []
    monkeypatch.setattr(records, "share_done", told.append)
    assert main(["verify", str(hostile.SOUND), "--jobs", "1"]) == 4
    assert (told[0], told[-1]) == (0, 1)
    assert told == sorted(told)


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
