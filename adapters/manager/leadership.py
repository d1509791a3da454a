"""Who may run: the holder of the Lease in control mode, the holder of a file lock in observe mode."""

from __future__ import annotations

import asyncio
import fcntl
from hashlib import blake2b
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Protocol

from kerf.engine.errors import InputError, KerfError

_FILE = "sqlite://"


class Office(Protocol):
    """As kerf.adapters.kubernetes.lease.Lease: `acquire`, then `hold` for as long as it lasts, then `release`."""

    async def acquire(self) -> int:
        """Returns when it is held, with the number of times that it has changed hands."""
        ...

    async def hold(self) -> None:
        """Ends only with an error: it is lost."""
        ...

    async def release(self) -> None: ...


class Nobody:
    """No election: there is only ever one."""

    async def acquire(self) -> int:
        return 0

    async def hold(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        return


class RecordLocked(KerfError):
    """Another observer writes this record."""

    code = "KERF343"


class FileLock(Nobody):
    """Held until the process ends. Raises RecordLocked (KERF343), at once, when another process has it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._open: IO[bytes] | None = None

    async def acquire(self) -> int:
        try:
            self._open = self._file.open("ab")
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


def lock_of(store: str) -> Path:
    """The lock's file for a record: beside a SQLite file, else in the folder for temporary files."""
    if store.startswith(_FILE):
        return Path(store.removeprefix(_FILE) + ".lock")
    return Path(gettempdir()) / f"kerf-{blake2b(store.encode(), digest_size=8).hexdigest()}.lock"
