"""A PostgreSQL server of one's own for tests: Debian's binaries, a throw-away cluster, 127.0.0.1 only."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

MISSING = "needs PostgreSQL's server (Debian's package postgresql, or POSTGRES_BIN with initdb and postgres)"
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin")
_PATIENCE = 60  # seconds until the server must answer


def binaries() -> Path | None:
    """The newest server's folder, None where there is none."""
    if named := os.environ.get("POSTGRES_BIN"):
        return Path(named)
    found = [folder for place in _PLACES for folder in Path("/").glob(place[1:]) if (folder / "initdb").exists()]
    return max(found, key=lambda folder: [int(part) for part in folder.parts if part.isdigit()], default=None)


class Server:
    """One cluster on one port. Its only user needs no password."""

    def __init__(self, home: Path, options: Sequence[str]) -> None:
        folder = binaries()
        assert folder is not None, MISSING
        self._folder, self._home, self._options = folder, home, options
        self._user, self._port = _unprivileged(), _free_port()
        self.url = f"postgresql://kerf@127.0.0.1:{self._port}/postgres"
        if self._user is not None:
            os.chown(home, self._user, -1)
        init: list[str | Path] = [
            folder / "initdb",
            "-D",
            home / "data",
            "-U",
            "kerf",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run([*init, "--no-locale"], check=True, capture_output=True, user=self._user, cwd=home)
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        settings = ["listen_addresses=127.0.0.1", f"port={self._port}", "unix_socket_directories=", "fsync=off"]
        flags = [part for setting in (*settings, *self._options) for part in ("-c", setting)]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._folder / "postgres", "-D", self._home / "data", *flags],
                stdout=log,
                stderr=subprocess.STDOUT,
                user=self._user,
                cwd=self._home,
            )
        _await(self.url, self._process, self._home / "log")

    def crash(self) -> None:
        self._stop(signal.SIGQUIT)

    def stop(self) -> None:
        self._stop(signal.SIGINT)  # a smart shutdown would wait for connections that a failed test left open

    def _stop(self, how: signal.Signals) -> None:
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(*options: str) -> Iterator[Server]:
    """A server that is gone afterwards with all that it had. `options` are postgres's own."""
    home = Path(tempfile.mkdtemp(prefix="kerf-postgres-"))
    try:
        server = Server(home, options)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"PostgreSQL did not start:\n{log.read_text(errors='replace')}") from None
            time.sleep(0.05)


def _unprivileged() -> int | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_uid
    except KeyError:
        return pwd.getpwnam("nobody").pw_uid


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
