"""Worker processes of a command: they work under its limits, and end with it."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import Struct

from kerf.adapters.cli import workers
from kerf.adapters.cli.main import main
from kerf.adapters.cli.workers import WorkerDied, workers_on
from kerf.engine.record.store import Store
from kerf.replay.verify import segments, verify
from tests.support.records import stored, whole_life
from tests.support.repository import ROOT

RECORD = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"


class Length(Struct, frozen=True):
    def run(self, store: Store) -> int:
        return sum(1 for _ in store.scan())


class Endless(Struct, frozen=True):
    file: str

    def run(self, store: Store) -> None:
        Path(self.file).write_text("begun")
        while True:
            pass


class HowStarted(Struct, frozen=True):
    def run(self, store: Store) -> str:
        return type(multiprocessing.current_process()).__name__


class Dies(Struct, frozen=True):
    def run(self, store: Store) -> None:
        os._exit(9)


def test_one_job_needs_no_workers() -> None:
    with workers_on(str(RECORD), 1) as workers:
        assert workers is None


@pytest.mark.slow
def test_verify_says_the_same_with_any_number_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And leaves nothing beside the record."""
    record = stored(tmp_path / "r.kerf", whole_life().store)
    alone: list[object] = []
    together: list[object] = []
    monkeypatch.setattr(segments, "SEGMENT_ENTRIES", 20)
    monkeypatch.setattr(verify, "LOOK_FOR", -1.0)
    for seconds in ("_COPIED", "_BEGUN"):
        monkeypatch.setattr(workers, seconds, -1.0)
    for reports, jobs in ((alone, "1"), (together, "2")):
        assert main(["verify", str(record), "--jobs", jobs, "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
    assert alone == together
    assert list(tmp_path.iterdir()) == [record]


THREADS = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has workers that start as copies")
@pytest.mark.parametrize(("before", "started"), [("", ["0.5", "ForkProcess"]), (THREADS, ["2.0", "SpawnProcess"])])
def test_workers_start_as_copies_where_no_other_thread_may_hold_a_lock(before: str, started: list[str]) -> None:
    script = f"""
import threading
from kerf.adapters.cli.workers import workers_on
from tests.unit.cli.test_workers import RECORD, HowStarted
{before}
with workers_on(str(RECORD), 2) as workers:
    print(workers.alone_for, workers.submit(HowStarted()).result())
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    assert ran.stdout.split() == started


@pytest.mark.slow
def test_workers_end_with_their_command(tmp_path: Path) -> None:
    """Also by Ctrl-C, whatever they are at."""
    begun = tmp_path / "begun"

    def command() -> None:
        with workers_on(str(RECORD), 2) as workers:
            assert workers is not None
            assert workers.submit(Length()).result() > 0
            workers.submit(Endless(str(begun)))
            while not begun.exists():
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command()
    for process in multiprocessing.active_children():
        process.join(30)
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_worker_that_is_killed_is_a_coded_error() -> None:
    def command() -> None:
        with workers_on(str(RECORD), 2) as workers:
            assert workers is not None
            workers.submit(Dies()).result()

    with pytest.raises(WorkerDied, match=r"KERF903.*--jobs 1"):
        command()
