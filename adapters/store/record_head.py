"""The sealed head of a record, which every database keeps beside the entries, and the rows of a turn with their chain
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from eventsourcing.persistence import StoredEvent
from msgspec import Struct

from kerf.adapters.store.compression import digest_of
from kerf.engine.record.errors import EpochRefused, PositionConflict, RecordCorrupt
from kerf.engine.record.hash_chain import START, link

WHOLE, CUT = 1, 2
"""Formats: a record from position 1 on, which every kerf reads, and a record that was cut."""
FORMAT = CUT
SALVAGE = "Keep the file, export what comes before as a bundle, and start a new record"
START_ANEW = "Nothing comes before it: keep the file, and start a new record"

EventRow = tuple[int, Any, int, str, bytes, bytes]
"""Position, stream, version in the stream, type, encoded entry, chain value."""


class Head(Struct, frozen=True, array_like=True):
    """Where the record ends: its last position with the chain's value there, and the epoch."""

    format: int
    id: str
    position: int
    chain: bytes
    epoch: int

    def seal(self) -> bytes:
        return blake2b(msgspec.msgpack.encode(self), digest_size=16).digest()


EMPTY = Head(WHOLE, "", START.position, START.value, 0)


def checked_head(row: Sequence[Any]) -> Head:
    """Returns the head from its stored fields and seal. Raises `RecordCorrupt` if they differ from what was sealed.

    So no writer continues from a damaged head.
    """
    try:
        head = msgspec.convert(tuple(row)[:5], Head, strict=True)
    except msgspec.ValidationError as error:
        raise RecordCorrupt(f"the record's head is unreadable: {error}", hint=SALVAGE) from error
    if head.format <= FORMAT and head.seal() != row[5]:
        raise RecordCorrupt("the record's head was changed", hint=SALVAGE)
    return head


def follow(
    head: Head, events: Sequence[StoredEvent], *, first: int, epochs: tuple[int, int], record_id: str
) -> tuple[Head, list[EventRow]]:
    """Returns the head after a turn, and the turn's rows.

    `first` is the position of the first event, `epochs` the lowest and highest epoch among the events. Raises
    `EpochRefused` and `PositionConflict`.
    """
    if epochs[0] < head.epoch:
        raise EpochRefused(
            f"the turn has epoch {epochs[0]}, the record has {head.epoch}",
            position=first,
            hint="Another process holds the office: stop writing, and take office again to go on",
        )
    if first != head.position + 1:
        raise PositionConflict(
            f"the turn begins at {first}, the record ends at {head.position}",
            position=first,
            hint="Read the entries up to the record's end, and decide again",
        )
    chain, rows = head.chain, []
    for position, event in enumerate(events, first):
        chain = link(chain, event.state)
        rows.append((position, event.originator_id, event.originator_version, event.topic, event.state, chain))
    return Head(head.format, record_id or head.id, first + len(rows) - 1, chain, epochs[1]), rows


def snapshot_seal(schema: str, position: int, digest: str, state: bytes) -> str:
    return digest_of(f"{schema}\x00{position}\x00{digest}\x00".encode() + state)


def damage(position: int, what: str) -> RecordCorrupt:
    before = position - 1
    export = f"kerf bundle export RECORD FILE --until {before}"
    hint = f"Keep the file, export what comes before ({export}), and start a new record" if before else START_ANEW
    return RecordCorrupt(f"the record is damaged: {what}", position=position, hint=hint)
