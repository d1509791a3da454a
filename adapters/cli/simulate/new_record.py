"""The record that a simulation writes: made beside its place, and moved there once it is complete.

It grows in a locked folder of its own beside its place (kerf.adapters.store.files.private_files). So what was there
before stays until the new record is complete, and a second process is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kerf.adapters.store.files.private_files import force, move, private_folder, regular_file
from kerf.adapters.store.read_only import blobs_of
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.codec import CODEC
from kerf.engine.record.errors import RecordExists, StoreError
from kerf.engine.record.observations import OfficeTaken


class NewRecord:
    """A record that is being written. Without `kept` there is none in the end, and one that was there before stays."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self.kept = True


@contextmanager
def new_record(path: Path | None, holder: str, say: Callable[[str], None] = lambda words: None) -> Iterator[NewRecord]:
    """An empty record that is at `path` afterwards; a temporary one without a path. After an exception, `path` is as it
    was.

    A record in which only `holder` took office is replaced, and `say` is told so. Raises RecordExists (KERF114) for
    anything else at `path`, StoreLocked (KERF106) if another process writes there, and other StoreErrors.
    """
    if path is None:
        with TemporaryDirectory(prefix="kerf-") as scratch, _created(Path(scratch) / "record.kerf") as store:
            yield NewRecord(store)
        return
    if path.is_dir():
        raise RecordExists("a record is a file, and this is a folder", where=str(path), hint="Name a file in it")
    regular_file(path)
    with private_folder(path) as fresh:
        before = _may_be_replaced(path, holder)
        with _created(fresh) as store:
            new = NewRecord(store)
            yield new
        if new.kept:
            force(fresh)
            move(fresh, path, before)
        if before is not None:
            done = "is replaced" if new.kept else "stays: no document was accepted"
            say(f"{path}, the record of an earlier run of {holder}, {done}")


@contextmanager
def _created(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path, "create", durable=False)
    try:
        yield store
    finally:
        store.close()


def _may_be_replaced(path: Path, holder: str) -> os.stat_result | None:
    """Returns the record that may be replaced, None if there is none. Raises RecordExists if what is there must
    stay.
    """
    found = regular_file(path)
    if found is not None and found.st_size and not _made_by(path, holder):
        raise RecordExists(
            f"there is something here that is no whole record of {holder}",
            where=str(path),
            hint="Give another file with --record, or move this one away",
        )
    return regular_file(path)


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
