"""Reads and writes the tables of a record that was cut: its base, the kept entries, and the progress of the cut.

kerf.adapters.store.retention.cut decides what stands in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Protocol

import msgspec
from msgspec import Struct

from kerf.adapters.store.compression import unpack
from kerf.adapters.store.record_head import SALVAGE
from kerf.adapters.store.transaction import Session
from kerf.engine.record.base import Base, KeptHistory, unpack_base
from kerf.engine.record.errors import UNDECODABLE, RecordCorrupt
from kerf.engine.record.hash_chain import START, link

ROWS_PER_PAGE = 4_096
"""Rows that are read at once."""
KEPT_LONGEST = "(topic LIKE 'claim.%' OR topic LIKE 'record.%' OR topic = 'decision.made')"
"""Selects the entries that are kept longest: claim events, decisions and the record's own. They have no blobs."""

TABLES = (
    "CREATE TABLE IF NOT EXISTS cut (one INTEGER PRIMARY KEY CHECK (one = 1), document {blob}, seal {blob})",
    "CREATE TABLE IF NOT EXISTS bases (position {bigint} PRIMARY KEY, packed INTEGER, size INTEGER, document {blob}, "
    "seal {blob})",
    "CREATE TABLE IF NOT EXISTS history (position {bigint} PRIMARY KEY, topic TEXT, state {blob}, chain {blob})",
)


class Cut(Struct, frozen=True, array_like=True):
    """How far a record is cut; all fields are zero if it is not.

    The record begins after `base`, where its chain has the value `chain`. Kept entries have been moved to their own
    table up to `moved`: there are `entries` of them, and the value of their chain is `history`. Kept entries up to
    `after`, with the chain value `before`, are removed or will be. `swept`: no unused blob remains.
    """

    base: int = 0
    at: int = 0  # of the base
    chain: bytes = START.value
    after: int = 0
    before: bytes = START.value
    moved: int = 0
    history: bytes = START.value
    entries: int = 0
    swept: bool = True


NONE = Cut()


class Readable(Protocol):
    """The part of a store that reading these tables needs."""

    def cut(self) -> Cut: ...
    def session(self) -> AbstractContextManager[Session]: ...


def seal_of(document: bytes) -> bytes:
    return blake2b(document, digest_size=16).digest()


# ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_cut(session: Session) -> Cut:
    """Returns how far the record is cut. Raises RecordCorrupt if that was changed. The tables must exist."""
    rows = session.run("SELECT document, seal FROM cut LIMIT 1")
    if not rows:
        return NONE
    document, seal = rows[0]
    try:
        if seal_of(document) == seal:
            return msgspec.msgpack.decode(document, type=Cut)
    except UNDECODABLE:
        pass
    raise RecordCorrupt("what the record says of its beginning was changed", hint=SALVAGE)


def read_base(session: Session, position: int) -> Base:
    """Returns the base at a position. Raises RecordCorrupt."""
    rows = session.run("SELECT packed, size, document, seal FROM bases WHERE position = ?", position)
    if not rows:
        raise RecordCorrupt("the state that the record begins with is missing", position=position, hint=SALVAGE)
    how, size, packed, seal = rows[0]
    try:
        document = unpack(how, size, packed)
        if seal_of(document) == seal:
            return unpack_base(document)
    except UNDECODABLE:
        pass
    raise RecordCorrupt("the state that the record begins with was changed", position=position, hint=SALVAGE)


def history(store: Readable, after: int, until: int | None) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields position, bytes and own chain value of each entry kept from before the base.

    Raises RecordCorrupt at the first entry that was changed, after yielding all before it.
    """
    cut = store.cut()
    end = cut.base if until is None else min(until, cut.base)
    position = max(after, cut.after)
    value: bytes | None = None
    while position < end:
        with store.session() as session:
            value = history_value(session, cut, position) if value is None else value
            rows = session.run(_KEPT_PAGE, position, end, position, end, ROWS_PER_PAGE)
        for at, encoded, stored in rows:
            value = link(value, encoded or b"")
            if stored is not None and stored != value:
                raise RecordCorrupt("the record is damaged: what was kept was changed", position=at, hint=SALVAGE)
            position = at
            yield at, encoded, value
        if len(rows) < ROWS_PER_PAGE:
            break


_KEPT_PAGE = (
    "SELECT position, state, chain FROM history WHERE position > ? AND position <= ? "
    "UNION ALL SELECT {position}, state, NULL FROM stored_events "
    f"WHERE {{position}} > ? AND {{position}} <= ? AND {KEPT_LONGEST} ORDER BY 1 LIMIT ?"
)


def history_value(session: Session, cut: Cut, position: int) -> bytes:
    """Returns the value of the kept entries' chain at a position up to which entries have been moved."""
    rows = session.run("SELECT chain FROM history WHERE position <= ? ORDER BY position DESC LIMIT 1", position)
    value: bytes = rows[0][0] if rows and position > cut.after else cut.before
    return value


def kept(store: Readable) -> KeptHistory | None:
    """Checks every byte of the kept entries and returns their summary; None if the record was not cut. Raises
    RecordCorrupt.
    """
    cut = store.cut()
    if not cut.base:
        return None
    entries, value = 0, cut.before
    for _, _, reached in history(store, 0, None):
        entries, value = entries + 1, reached
    return KeptHistory(base=cut.base, after=cut.after, before=cut.before.hex(), history=value.hex(), entries=entries)


def write_cut(session: Session, cut: Cut) -> None:
    document = msgspec.msgpack.encode(cut)
    session.run("DELETE FROM cut")
    session.run("INSERT INTO cut VALUES (1, ?, ?)", document, seal_of(document))
