"""The record that a command reads: opening it, and the positions and times that people give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext

from kerf.adapters.cli.boundary import USAGE, exit_code
from kerf.adapters.cli.limits import limited
from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.store.open import AnyStore, file_of, in_database, open_record
from kerf.engine.errors import InputError, KerfError
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.passwords import without_password
from kerf.engine.record.codec import Codec
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.errors import CheckpointMissed, FormatUnsupported, RecordShortened
from kerf.engine.record.hash_chain import SIZE, Checkpoint
from kerf.replay.errors import NotObserved
from kerf.replay.partial_records import imported_from, require
from kerf.replay.time_travel.moments import Moment, end_of, is_position, locate, moment_of, time_of
from kerf.replay.time_travel.record_beginning import first_settings


class _NotingCodec(Codec):
    """Keeps the first entry of a newer kerf that was decoded."""

    newer: Entry | None = None

    def decode(self, encoded: bytes) -> Entry:
        entry = super().decode(encoded)
        if self.newer is None and isinstance(entry.payload, UnknownEntry):
            self.newer = entry
        return entry


@contextmanager
def opened(record: str, *, tells_newer: bool = False, endless: bool = False) -> Iterator[AnyStore]:
    """Open a record, and close it at the end. Raises StoreError.

    Raises FormatUnsupported (KERF110), at the end, if entries of a newer kerf were read: what was told leaves them
    out. A command that tells this itself says so by `tells_newer`.

    A file may take so much time and memory (`limited`). A database may take any, and so may what is `endless`: whoever
    writes it is no stranger.
    """
    codec = _NotingCodec()
    limits = nullcontext() if endless or in_database(record) else limited(file_of(record))
    with limits, closing(open_record(record, codec=codec)) as store:
        try:
            yield store
        except KerfError as error:
            if codec.newer is not None and not tells_newer and exit_code(error) == USAGE:
                raise _of_newer_kerf(record, codec.newer) from error
            raise
    if codec.newer is not None and not tells_newer:
        raise _of_newer_kerf(record, codec.newer)


def _of_newer_kerf(record: str, entry: Entry) -> FormatUnsupported:
    return FormatUnsupported(
        f"this version of kerf does not know entries of type {entry.type} schema {entry.schema}, and left them out",
        position=entry.position,
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


def located(store: AnyStore, when: str) -> Moment:
    """The moment that a position or time means. How a time was understood that may be understood otherwise is noted on
    standard error."""
    moment = moment_of(store, when)
    if moment.note:
        print_error(f"Note: {moment.note}")
    return moment


def asked_time(store: AnyStore, when: str) -> int:
    """The time (ms since the epoch) that a text names, at most that of the last entry; 0 for a position."""
    return 0 if is_position(when.strip()) else min(moment_of(store, when).at, end_of(store).at)


def position_before(store: AnyStore, text: str) -> int:
    """The position before the first entry at or after a time, or before a position."""
    if is_position(text.strip()):
        return locate(store, text) - 1
    time, note = time_of(store, text)
    if note:
        print_error(f"Note: {note}")
    position = max(0, locate(store, "start") - 1)
    for entry in store.scan():
        if entry.at >= time:
            break
        position = entry.position
    return position
