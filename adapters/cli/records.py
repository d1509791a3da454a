"""The record that a command reads: opening it, and the positions and times that people give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.store.open import AnyStore, open_record
from kerf.projections.prose.amounts import duration, moment
from kerf.replay.errors import NotObserved
from kerf.replay.time_travel.positions import locate, time_after_end, time_of
from kerf.replay.time_travel.record_beginning import first_settings


@contextmanager
def opened(record: str) -> Iterator[AnyStore]:
    """Open a record, and close it at the end. Raises StoreError."""
    store = open_record(record)
    try:
        yield store
    finally:
        store.close()


def refuse_control_mode(store: AnyStore, record: str) -> None:
    """Raises NotObserved for a record of control mode: where kerf acts itself there is nothing to compare."""
    settings = first_settings(store)
    if settings is not None and not settings.observe:
        hint = "Observe beside Karpenter with kerf run --mode observe; what kerf did itself: kerf log, kerf explain"
        raise NotObserved(
            "this record was made in control mode, so it says nothing of Karpenter", where=record, hint=hint
        )


def located(store: AnyStore, when: str) -> int:
    """The position that a position or time means. For a time after the last entry it is that entry, with a note."""
    late = time_after_end(store, when)
    if late is not None:
        print_error(
            f"Note: {moment(late.asked)} is {duration(late.asked - late.last)} after the record's last entry (position "
            f"{late.position}): the answer is as of {moment(late.last)}"
        )
    return locate(store, when)


def position_before(store: AnyStore, text: str) -> int:
    """The position before the first entry at or after a time, or before a position."""
    if text.strip().isascii() and text.strip().isdigit():
        return locate(store, text) - 1
    time = time_of(store, text)
    position = max(0, locate(store, "start") - 1)
    for entry in store.scan():
        if entry.at >= time:
            break
        position = entry.position
    return position
