"""A record is read while its controller writes it: followed, explained, told, and taken out as a bundle."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest

from kerf.adapters.store.files.bundle import inspect_bundle
from kerf.adapters.store.open import open_record
from tests.support.memory import MemoryStore
from tests.support.repository import ROOT
from tests.support.servers.postgres import MISSING, binaries, running
from tests.support.slow import slow
from tests.support.world import World

WAIT = 30  # seconds that anything may take
PAUSE = 0.05  # seconds between two pods: each command reads a record of some hundred turns, not of many thousand


@pytest.fixture(params=["sqlite", *slow("postgresql")])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite://{tmp_path / 'record.kerf'}"
        return
    if binaries() is None:
        pytest.skip(MISSING)
    with running() as server:
        yield server.url


class Writer:
    """A controller in a thread of its own: pods that come and go without end, until it is stopped."""

    def __init__(self, url: str) -> None:
        self.wrote = threading.Semaphore(0)
        self._stop = threading.Event()
        self._go = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[url])

    def _run(self, url: str) -> None:
        store = open_record(url, "create")
        try:
            world = World(cast(MemoryStore, store))
            world.prepare()
            world.pending("first")
            world.after(1_000)
            self.wrote.release()
            self._go.wait(WAIT)
            for number in range(100_000):
                if self._stop.wait(PAUSE):
                    return
                world.pending(f"more-{number}")
                world.after(1_000)
                world.gone(f"more-{number}")
                self.wrote.release()
        finally:
            store.close()

    def __enter__(self) -> Writer:
        self._thread.start()
        assert self.wrote.acquire(timeout=WAIT)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._go.set()
        self._thread.join(WAIT)

    def go_on(self) -> None:
        self._go.set()


def kerf(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "kerf", *arguments],
        capture_output=True, timeout=WAIT, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_a_log_is_followed(url: str) -> None:
    with Writer(url) as writer:
        command = [sys.executable, "-m", "kerf", "log", url, "--follow"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        reader = threading.Thread(target=_pour, args=[process.stdout, lines])
        reader.start()
        try:
            _until(lines, "default/first")
            writer.go_on()
            _until(lines, "default/more-3")
            assert process.poll() is None
        finally:
            process.terminate()
            process.wait(WAIT)
            reader.join(WAIT)
            process.stdout.close()


def _pour(source: Iterable[str], lines: queue.Queue[str]) -> None:
    for line in source:
        lines.put(line)


def _until(lines: queue.Queue[str], text: str) -> None:
    """Fails with `queue.Empty` when nothing more comes."""
    while text not in lines.get(timeout=WAIT):
        pass


@pytest.mark.slow
def test_it_is_explained_told_and_taken_out_while_it_is_written(url: str, tmp_path: Path) -> None:
    with Writer(url) as writer:
        writer.go_on()
        answers = [
            kerf("explain", url, "pod", "default/first"),
            kerf("story", url, "default/first"),
            kerf("log", url, "--subject", "default/first"),
            kerf("status", url, "--all"),
            kerf("diff", url, "start"),
            kerf("at", url),
            kerf("verify", url),
        ]
        for answer in answers:
            assert (answer.returncode, answer.stderr) == (0, b""), answer.args
        assert all(b"default/first" in answer.stdout for answer in answers[:3])
        made = kerf("bundle", "export", "-", KERF_STORE=url)
        assert (made.returncode, made.stderr) == (0, b"")
        for _ in range(3):
            assert writer.wrote.acquire(timeout=WAIT)  # nobody was in its way
    bundle = tmp_path / "incident.kerfb"
    bundle.write_bytes(made.stdout)
    assert inspect_bundle(bundle).entries > 0
    assert kerf("verify", str(bundle)).returncode == 0


def test_a_bundle_needs_a_record() -> None:
    answer = kerf("bundle", "export", "-", KERF_STORE="")
    assert answer.returncode == 2
    assert b"KERF_STORE" in answer.stderr


def test_a_file_that_nobody_adds_to_is_not_followed() -> None:
    golden = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
    assert kerf("log", str(golden), "--follow").returncode == 0
