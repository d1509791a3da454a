"""The record that `kerf import` writes: the histories of files, told to a runtime in order of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from msgspec import Struct

import kerf
from kerf.adapters.cli.limits import limited
from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.cli.render.progress import progress_line
from kerf.adapters.cli.simulate.new_record import new_record
from kerf.adapters.importers.errors import Unreadable
from kerf.adapters.importers.formats import read_history
from kerf.adapters.importers.history import History, Unread, imported, in_order, joined
from kerf.adapters.importers.karpenter.log import as_one_log
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.model.settings import Settings
from kerf.engine.record.claim_events import Adopted, Requested, Terminated
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ControllerDecided, Imported
from kerf.engine.record.store import Store
from kerf.engine.runtime.runtime import Runtime

IMPORT_HOLDER = "kerf import"
"""Who writes an imported record. Such a record may be replaced by the next one."""


class FileRead(Struct, frozen=True):
    """One file: its format, how many lines or events told something, told nothing of interest, or could not be read."""

    file: str
    source: str
    read: int
    other: int
    unread: int
    first_unread: tuple[Unread, ...]


class Summary(Struct, frozen=True):
    """What was imported. Counts are of the record; `adopted` of the `claims` were there before the first line."""

    record: str
    imported: Imported
    files: tuple[FileRead, ...]
    entries: int
    claims: int
    adopted: int
    gone: int
    decisions: int
    workloads: int
    pods: int


def import_files(files: Sequence[Path], record: Path) -> Summary:
    """Make the record. The same files give the same entries. Raises InputError (KERF36x), StoreError, and
    LimitReached (KERF128); there is no record then.
    """
    with limited(*files):
        histories = joined(as_one_log(histories_of(files)))
        mark = imported(histories)
        with new_record(record, IMPORT_HOLDER, say=print_error) as new, progress_line("written up to entry") as told:
            entries = _write(histories, mark, new.store, told)
    return Summary(
        record=str(record),
        imported=mark,
        files=tuple(_file_read(file, history) for file, history in zip(files, histories, strict=True)),
        entries=len(entries),
        claims=sum(isinstance(entry.payload, Requested | Adopted) for entry in entries),
        adopted=sum(isinstance(entry.payload, Adopted) for entry in entries),
        gone=sum(isinstance(entry.payload, Terminated) for entry in entries),
        decisions=sum(isinstance(entry.payload, ControllerDecided) for entry in entries),
        workloads=len({entry.payload.key for entry in entries if isinstance(entry.payload, Workload)}),
        pods=len({entry.payload.uid for entry in entries if isinstance(entry.payload, Pod)}),
    )


def histories_of(files: Sequence[Path]) -> list[History]:
    """What each file tells. Raises InputError (KERF36x)."""
    return [_read(file) for file in files]


def _read(file: Path) -> History:
    try:
        return read_history(file)
    except OSError as error:
        raise Unreadable(
            f"it cannot be read: {error.strerror or error}", where=str(file), hint="Look at the path"
        ) from error


def _write(histories: Sequence[History], mark: Imported, store: Store, progress: Callable[[int], None]) -> list[Entry]:
    """Tell a runtime everything. Its clock is the histories'."""
    told = in_order(histories)
    runtime = Runtime(
        store,
        holder=IMPORT_HOLDER,
        settings=Settings(observe=True),
        record=_record_id(histories),
        engine=kerf.__version__,
        now=mark.since,
        imported=mark,
    )
    entries = list(runtime.new_entries)
    for turn in told:
        runtime.turn(turn.observations, turn.at)
        if runtime.error is not None:
            raise runtime.error
        entries += runtime.new_entries
        progress(len(entries))
    return entries


def _record_id(histories: Sequence[History]) -> str:
    """The record's id, out of what it is made of: the same import is the same record."""
    digest = blake2b(digest_size=16)
    for observation in chain.from_iterable(told.observations for told in in_order(histories)):
        digest.update(repr(observation.payload).encode(errors="replace"))
    return digest.hexdigest()


def _file_read(file: Path, history: History) -> FileRead:
    return FileRead(
        str(file), history.source, history.read, history.other, history.unread, tuple(history.first_unread)
    )  # fmt: skip
