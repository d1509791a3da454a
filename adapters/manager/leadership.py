"""Leader election: in control mode the holder of the Lease runs, in observe mode the holder of a file lock."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Protocol

from kerf.adapters.kubernetes.lease import Lease
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.manager.settings import Options
from kerf.adapters.manager.stderr import print_error
from kerf.adapters.store.files.private_files import regular_file
from kerf.engine.errors import InputError, KerfError

_FILE = "sqlite://"


class Leadership(Protocol):
    """`acquire`, then `hold` for as long as there is work, then `release`. `Lease` is one of them."""

    async def acquire(self) -> int:
        """Returns once it is held: the number of times that it has changed hands."""
        ...

    async def hold(self) -> None:
        """Ends only with an error: the leadership is lost."""
        ...

    async def release(self) -> None: ...


class NoElection:
    """Without leader election (--disable-leader-election) whoever runs is the leader."""

    async def acquire(self) -> int:
        return 0

    async def hold(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        return


class RecordLocked(KerfError):
    """Another process in observe mode writes this record."""

    code = "KERF343"


class FileLock(NoElection):
    """A lock that the process holds until it ends. Raises RecordLocked (KERF343) at once when another process has it,
    and SpecialFile (KERF119) if a link or the like is there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._open: IO[bytes] | None = None

    async def acquire(self) -> int:
        regular_file(self._file)
        try:  # its name can be guessed: neither follow a link nor wait for a pipe's reader
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._open = os.fdopen(os.open(self._file, flags, 0o600), "rb")
        except OSError as error:
            raise InputError(str(error), where=str(self._file), code="KERF330") from error
        try:
            fcntl.flock(self._open, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._open.close()
            hint = "Stop the other one, or give this one another --store"
            raise RecordLocked("another kerf observes into this record", where=str(self._file), hint=hint) from error
        return 0

    async def release(self) -> None:
        if self._open is not None:
            self._open.close()


def lock_file(store: str) -> Path:
    """The lock file of a record: beside a SQLite file, else in the folder for temporary files."""
    if store.startswith(_FILE):
        return Path(store.removeprefix(_FILE) + ".lock")
    return Path(gettempdir()) / f"kerf-{blake2b(store.encode(), digest_size=8).hexdigest()}.lock"


def leadership(
    store: str, session: Session, options: Options, identity: str, *, observe: bool, busy: Callable[[], bool]
) -> Leadership:
    """The leadership that this process needs while it works. `store` is the record's URL; `busy` says whether the
    process computes for long."""
    if observe:
        return FileLock(lock_file(store))
    if not options.leader_election:
        return NoElection()
    namespace, name = options.lease_namespace, options.lease_name

    def waits(holder: str) -> None:
        print_error(f"waiting for the Lease {namespace}/{name}, which {holder} holds")

    return Lease(session, namespace=namespace, identity=identity, name=name, waits=waits, busy=busy)
