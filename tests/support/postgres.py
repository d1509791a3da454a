"""A PostgreSQL server of one's own for tests: Debian's binaries, a throw-away cluster, 127.0.0.1 only."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
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


@contextmanager
def server(*options: str) -> Iterator[str]:
    """The URL of a running server's database, whose only user needs no password. `options` are postgres's own."""
    folder = binaries()
    assert folder is not None, MISSING
    home = Path(tempfile.mkdtemp(prefix="kerf-postgres-"))
    user = _unprivileged()
    if user is not None:
        os.chown(home, user, -1)
    data, port = home / "data", _free_port()
    try:
        subprocess.run(
            [folder / "initdb", "-D", data, "-U", "kerf", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale"],
            check=True,
            capture_output=True,
            user=user,
            cwd=home,
        )
        settings = ["listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "fsync=off", *options]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                [folder / "postgres", "-D", data, *(part for each in settings for part in ("-c", each))],
                stdout=log,
                stderr=subprocess.STDOUT,
                user=user,
                cwd=home,
            )
        try:
            url = f"postgresql://kerf@127.0.0.1:{port}/postgres"
            _await(url, process, home / "log")
            yield url
        finally:
            process.terminate()  # a smart shutdown would wait for connections that a failed test left open
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
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
