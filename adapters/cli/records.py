"""The record that a command reads: opening it, and the positions and times that people give."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from time import time_ns
from typing import Any

from msgspec import Raw

from kerf.adapters.cli.boundary import USAGE, exit_code
from kerf.adapters.cli.limits import limited, share_done
from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.cli.render.progress import progress_line
from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.open import AnyStore, file_of, in_database, open_record
from kerf.engine.errors import InputError, KerfError
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.passwords import without_password
from kerf.engine.record.codec import Codec
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.errors import CheckpointMissed, FormatUnsupported, RecordShortened, StoreError
from kerf.engine.record.hash_chain import SIZE, Checkpoint
from kerf.engine.record.store import Store
from kerf.engine.state.load import PROGRESS_EVERY
from kerf.projections.prose.amounts import moment
from kerf.replay.errors import NotObserved
from kerf.replay.partial_records import imported_from, require
from kerf.replay.time_travel.moments import Moment, end_of, is_position, last_before, locate, moment_of, time_of
from kerf.replay.time_travel.record_beginning import first_settings

NOW = "now"


class _NotingCodec(Codec):
    """Keeps what the first entry of a newer kerf holds, with its position, and tells how many entries were read."""

    newer: tuple[int, UnknownEntry] | None = None
    tell: Callable[[int], None]
    _read = 0

    def decode_all(self, encoded: Iterable[bytes], only: Collection[str] | None = None) -> Iterator[Entry]:
        return super().decode_all(self._counted(encoded), only)

    def _counted(self, encoded: Iterable[bytes]) -> Iterator[bytes]:
        for one in encoded:
            self._read += 1
            if self._read % PROGRESS_EVERY == 0:
                self.tell(self._read)
            yield one

    def read_other(self, name: str, schema: int, raw: Raw, position: int) -> tuple[int, Any]:
        schema, payload = super().read_other(name, schema, raw, position)
        if self.newer is None and isinstance(payload, UnknownEntry):
            self.newer = position, payload
        return schema, payload


_ENTRIES_READ = "entries read (again counts again):"
"""Some answers take several readings of a record, so that it may be more than the record has."""


@contextmanager
def opened(
    record: str, *, tells_newer: bool = False, endless: bool = False, decides: bool = False
) -> Iterator[AnyStore]:
    """Open a record, and close it at the end. Raises StoreError.

    Raises FormatUnsupported (KERF110), at the end, if entries of a newer kerf were read: what was told leaves them
    out. A command that tells this itself says so by `tells_newer`.

    A file may take so much time and memory (`limited`, with `decides`). A database may take any, and so may what is
    `endless`: whoever writes it is no stranger.
    """
    limits = nullcontext() if endless or in_database(record) else limited(file_of(record), decides=decides)
    codec = _NotingCodec()
    with limits, progress_line(_ENTRIES_READ) as codec.tell, closing(open_record(record, codec=codec)) as store:
        try:
            yield store
            _note_what_was_believed(store)
        except KerfError as error:
            if codec.newer is not None and not tells_newer and exit_code(error) == USAGE:
                raise _of_newer_kerf(record, *codec.newer) from error
            raise
    if codec.newer is not None and not tells_newer:
        raise _of_newer_kerf(record, *codec.newer)


def telling_share(store: AnyStore, tell: Callable[[int], None]) -> Callable[[int], None]:
    """Tells positions, and what share of the record lies before them (`share_done`)."""
    first, last = 0, 0
    with suppress(StoreError):  # what is wrong is told by whoever reads it
        last = store.last_position()

    def told(position: int) -> None:
        nonlocal first
        first = first or position
        if last > first:
            share_done((position - first) / (last - first))
        tell(position)

    return told


def _note_what_was_believed(store: AnyStore) -> None:
    """Whoever made a bundle made its snapshots, too."""
    if isinstance(store, BundleStore) and store.believed:
        told = f"the state comes from a snapshot in the bundle (position {store.believed})"
        print_error(f"Note: {told}. kerf verify says whether it follows from the entries")


def _of_newer_kerf(record: str, position: int, entry: UnknownEntry) -> FormatUnsupported:
    return FormatUnsupported(
        f"this version of kerf does not know entries of type {entry.type} schema {entry.schema}, and left them out",
        position=position,
        where=without_password(record),
        hint="Use a newer version of kerf",
    )


def compare_with_checkpoint(store: AnyStore, kept: str) -> Checkpoint:
    """Checks that the record up to a position is the one whose chain somebody kept, as "POSITION:CHAIN".

    Raises InputError (KERF202) for another form, CheckpointMissed (KERF126) for another record, and RecordShortened if
    the record begins later.
    """
    position, _, value = kept.partition(":")
    if not re.fullmatch(rf"[0-9]{{1,18}}:[0-9a-f]{{{2 * SIZE}}}", kept, re.ASCII):
        hint = "Write POSITION:CHAIN, as the Event RecordCheckpoint and a signature's comment say them"
        raise InputError(f"{kept[:80]!r} is no checkpoint", hint=hint, code="KERF202")
    checkpoint = Checkpoint(int(position), bytes.fromhex(value))
    found = store.checkpoint(checkpoint.position)
    if found == checkpoint:
        return checkpoint
    if found.position > checkpoint.position:
        hint = "Compare with a later checkpoint, or verify the whole record"
        raise RecordShortened("the record begins after the checkpoint", position=checkpoint.position, hint=hint)
    shorter = found.position < checkpoint.position
    why = "entries are missing at the end" if shorter else "an entry up to here was changed"
    raise CheckpointMissed(
        f"the record is not the one of the checkpoint: {why}",
        position=found.position,
        hint="Or it is another record. A bundle with pseudonyms has a chain of its own",
    )


def refuse_control_mode(store: AnyStore, record: str) -> None:
    """Raises NotObserved for a record of control mode: where kerf acts itself there is nothing to compare. Raises
    PartialRecord for an imported one: kerf decided nothing in it."""
    require(imported_from(store), Missing.KEPT, "what kerf would have done")
    settings = first_settings(store)
    if settings is not None and not settings.observe:
        hint = "Observe beside Karpenter with kerf run --mode observe; what kerf did itself: kerf log, kerf explain"
        raise NotObserved(
            "this record was made in control mode, so it says nothing of Karpenter", where=record, hint=hint
        )


def has_pseudonyms(store: Store) -> bool:
    """Whether this is a bundle whose names are pseudonyms."""
    return isinstance(store, BundleStore) and store.info.sanitised


def located(store: AnyStore, when: str) -> Moment:
    """The moment that a position or time means. How a time was understood that may be understood otherwise is noted on
    standard error."""
    found = moment_of(store, spelled(when))
    if found.note:
        print_error(f"Note: {found.note}")
    return found


def beginning_at(store: AnyStore, when: str) -> Moment:
    """The moment that a part of a record begins with. Of a time before the record, it is the record's start, which is
    noted on standard error: a young record has less than `-7d`."""
    text = spelled(when)
    if text != "start" and not is_position(text.strip()):
        start, (time, _) = moment_of(store, "start"), time_of(store, text)
        if time < start.at:
            print_error(f"Note: {when} is before the record begins: taken from its start, {moment(start.at)}")
            return start
    return located(store, when)


def usual_moment(store: AnyStore) -> str:
    """The moment that a what-if is about where nobody names one: the end. Of a captured record it is that of its lists,
    so that what kerf decided in it is decided anew."""
    imported = imported_from(store)
    return moment(imported.until) if imported is not None and imported.captured else "end"


def asked_time(store: AnyStore, when: str) -> int:
    """The time (ms since the epoch) that a text names, at most that of the last entry; 0 for a position."""
    return 0 if is_position(when.strip()) else min(moment_of(store, spelled(when)).at, end_of(store).at)


def spelled(when: str) -> str:
    """A text that names a moment; "now" is the time of this machine's clock."""
    return moment(time_ns() // 1_000_000) if when.strip() == NOW else when


def position_before(store: AnyStore, text: str) -> int:
    """The position before the first entry at or after a time, or before a position."""
    text = spelled(text)
    if is_position(text.strip()):
        return locate(store, text) - 1
    time, note = time_of(store, text)
    if note:
        print_error(f"Note: {note}")
    return last_before(store, time)
