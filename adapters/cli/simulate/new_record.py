"""The record that a simulation writes: made beside its place, and moved there once it is complete.

It grows in a folder beside its place, FILE.part, which is locked: a second process is refused, and what a killed one
left behind is deleted. So what was there before stays until the new record is complete.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from kerf.adapters.store.read_only import blobs_of
from kerf.adapters.store.sqlite.errors import refused_by_system
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.codec import CODEC
from kerf.engine.record.errors import RecordExists, StoreError, StoreLocked
from kerf.engine.record.observations import OfficeTaken


class NewRecord:
    """A record that is being written. Without `keep`, a record that was there before stays."""

    def __init__(self, store: SQLiteStore, *, replaces: bool) -> None:
        self.store = store
        self.keep = True
        self._replaces = replaces

    @property
    def kept(self) -> bool:
        return self.keep or not self._replaces


@contextmanager
def new_record(path: Path | None, holder: str, say: Callable[[str], None] = lambda words: None) -> Iterator[NewRecord]:
    """An empty record that is at `path` afterwards; a temporary one without a path. After an exception, `path` is as it
    was.

    A record in which only `holder` took office is replaced, and `say` is told so. Raises RecordExists (KERF114) for
    anything else at `path`, StoreLocked (KERF106) if another process writes there, and other StoreErrors.
    """
    if path is None:
        with TemporaryDirectory(prefix="kerf-") as scratch, _created(Path(scratch) / "record.kerf") as store:
            yield NewRecord(store, replaces=False)
        return
    with _folder(path) as folder:
        replaces, fresh = _may_be_replaced(path, holder), folder / path.name
        with _created(fresh) as store:
            new = NewRecord(store, replaces=replaces)
            yield new
        if new.kept:
            _put(fresh, path)
        if replaces:
            done = "is replaced" if new.kept else "stays: no document was accepted"
            say(f"{path}, the record of an earlier run of {holder}, {done}")


def _put(fresh: Path, path: Path) -> None:
    with refused_by_system(path):
        for suffix in ("-wal", "-shm"):  # a log that outlived its record would be taken for the new one's
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        fresh.replace(path)


@contextmanager
def _created(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path, "create")
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """An empty folder beside the path, locked by this process."""
    if path.is_dir():
        raise RecordExists("a record is a file, and this is a folder", where=str(path), hint="Name a file in it")
    folder = path.with_name(path.name + ".part")
    with refused_by_system(path):
        folder.mkdir(exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(held, folder, path)
        try:
            with refused_by_system(path):
                for left in folder.iterdir():  # by a process that was killed
                    left.unlink()
            yield folder
        finally:
            rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)


def _lock(held: int, folder: Path, path: Path) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if folder.stat().st_ino == os.fstat(held).st_ino:
            return
    except OSError:
        pass  # held by another process, or removed by one that has just finished
    raise StoreLocked(
        "another process is writing this record", where=str(path), hint="Wait for it, or give another file"
    )


def _may_be_replaced(path: Path, holder: str) -> bool:
    """Whether there is a record that may be replaced. Raises RecordExists if what is there must stay."""
    if not path.exists():
        return False
    if path.stat().st_size and not _made_by(path, holder):
        raise RecordExists(
            f"there is something here that is no whole record of {holder}",
            where=str(path),
            hint="Give another file with --record, or move this one away",
        )
    return True


def _made_by(path: Path, holder: str) -> bool:
    """Whether the file is an undamaged record in which only `holder` has taken office."""
    holders = set()
    try:
        store = SQLiteStore(path, "read")
        try:
            for encoded in store.encoded():
                entry = CODEC.decode(encoded)
                for digest in blobs_of(entry):
                    store.blob(digest)
                if isinstance(entry.payload, OfficeTaken):
                    holders.add(entry.payload.holder)
        finally:
            store.close()
    except StoreError:
        return False
    return holders == {holder}
