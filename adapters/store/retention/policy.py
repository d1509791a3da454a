"""How long the record is kept, by age and size, and where it is to be cut next.

Observations are most of a record and are removed first. Claim events and decisions stay for longer. A controller cuts a
record at one of its snapshots, because that costs nothing; a command cuts it at the end of any turn.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

import kerf
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.read_only import Source
from kerf.adapters.store.retention.cut_tables import Cut
from kerf.engine.record.base import Base
from kerf.engine.record.codec import CODEC
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import RecordCorrupt
from kerf.engine.record.store import Store
from kerf.engine.state import snapshot
from kerf.engine.state.base import base_of
from kerf.engine.state.load import load

DAY = 24 * 60 * 60 * 1000  # ms
FULL, GOAL = 0.9, 0.8
"""Shares of the allowed size: a cut is due when the record reaches the first, and shrinks it to the second."""
_GRAIN = DAY
"""Kept entries are removed only when this much time's worth of them is due, because each cut adds an entry."""
_PLACES, _ROWS = 16, 32  # of a sample
_ROW_BYTES = 150  # of a row beside its content: headers, stream, type, chain value, indexes


class Retention(Struct, frozen=True):
    """How long to keep a record: ages in ms and the size in bytes; 0 means for ever, and without limit."""

    observations: int = 7 * DAY
    decisions: int = 90 * DAY
    size: int = 8 << 30


class AnyRecord(Source, Store, Protocol):
    """A record in any form that can be cut or looked at."""


class Due(Struct, frozen=True):
    """The next cut: the record will begin after `base`, and kept entries up to `after` are removed."""

    base: int
    after: int


class Extent(Struct, frozen=True):
    """The bytes that the record takes: in all, its entries from the base on, and those kept from before.

    These are estimates, except for SQLite's `size`. `since` is the time of the base, or of the first entry; `oldest`
    that of the oldest entry still stored (ms since the epoch, 0 for an empty record).
    """

    size: int
    live: int
    kept: int
    since: int
    oldest: int


def extent(store: ChainedStore) -> Extent:
    """Measures what the record takes. Raises StoreError."""
    cut, last = store.cut(), store.last_position()
    live = _weight(store, "stored_events", "{position}", cut.moved, last) * (last - cut.moved)
    kept = _weight(store, "history", "position", cut.after, cut.moved) * cut.entries if cut.entries else 0
    oldest = _Times(store, cut).oldest()
    since = cut.at if cut.base else oldest
    size = store.size(int(live + kept))
    share = min(1.0, size / max(1.0, live + kept))  # where the size is known, the estimates are parts of it
    return Extent(size, int(live * share), int(kept * share), since, oldest)


def _weight(store: ChainedStore, table: str, position: str, first: int, last: int) -> float:
    """Returns the average bytes of a row between two positions, from a sample of rows."""
    sizes: list[int] = []
    statement = f"SELECT length(state) FROM {table} WHERE {position} > ? ORDER BY {position} LIMIT {_ROWS}"
    with store.session() as session:
        for place in range(_PLACES if last > first else 0):
            sizes += [size or 0 for (size,) in session.run(statement, first + (last - first) * place // _PLACES)]
    return sum(sizes) / len(sizes) + _ROW_BYTES if sizes else 0.0


def due(store: ChainedStore, wanted: Retention, now: int, *, candidates: Sequence[int] | None = None) -> Due | None:
    """Returns the cut that is due at `now`; None if there is none, or while an earlier cut is not finished.

    It is made at one of `candidates` (positions in order), or where a turn ends. Raises StoreError.
    """
    cut, last = store.cut(), store.last_position()
    if not last or cut.moved < cut.base:
        return None
    found, times = extent(store), _Times(store, cut)
    aged = times.last_at(cut.base, last, now - wanted.observations) if wanted.observations else cut.base
    base = max(cut.base, _latest(candidates, aged))
    after = cut.after
    if wanted.decisions:
        over = times.last_at(cut.after, base, now - wanted.decisions)
        if base > cut.base or times.at(over) - times.at(cut.after) >= _GRAIN:
            after = over
    if wanted.size and found.size > FULL * wanted.size:
        base, after = _smaller(store, found, int(found.size - GOAL * wanted.size), cut, base, after, candidates)
    return Due(base, after) if (base, after) != (cut.base, cut.after) else None


def _smaller(
    store: ChainedStore, found: Extent, excess: int, cut: Cut, base: int, after: int, candidates: Sequence[int] | None
) -> tuple[int, int]:
    """Returns a cut that also frees `excess` bytes: from observations as long as there are any, then from kept
    entries.
    """
    last = store.last_position()
    per_entry = found.live / max(1, last - cut.moved)
    wished = min(last, cut.base + int(excess / per_entry) + 1) if per_entry else cut.base
    base = max(base, _turn_end(store, wished) if candidates is None else _next(candidates, wished, cut.base))
    missing = excess - int(per_entry * (base - cut.base))
    if missing > 0 and found.kept:
        share = min(1.0, missing / found.kept)
        with store.session() as session:
            rows = session.run("SELECT position FROM history ORDER BY 1 LIMIT 1 OFFSET ?", int(cut.entries * share))
        after = max(after, rows[0][0] if rows else cut.moved)
    return base, after


class _When(Struct):
    """Decodes only the time of the facts, and skips the rest."""

    at: int = 0


def base_at(store: AnyRecord, position: int) -> Base:
    """Returns the base after a position that ends a turn, from the snapshot there or else by folding. Raises
    StoreError.
    """
    found = store.snapshot(position, snapshot.SCHEMA)
    if found is not None and found[0] == position:
        _, data, digest = found
    else:
        data, digest = snapshot.encode(load(store, position))
    at = msgspec.msgpack.decode(data, type=_When).at
    chain = store.checkpoint(position).value
    return base_of(data, digest, at=at, position=position, chain=chain, engine=kerf.__version__)


def before_turn(store: AnyRecord, position: int) -> int:
    """Returns the position before the turn that the entry at `position` belongs to. Raises StoreError."""
    return next((entry.turn - 1 for entry in store.scan(position - 1, position)), position - 1)


def end_of_turn(store: AnyRecord, position: int) -> int:
    """Returns the last position of the turn that the entry at `position` belongs to.

    Of a turn whose end is damaged it is the end of the turn before: half a turn cannot be decided again. Raises
    StoreError.
    """
    last, begins = position, before_turn(store, position)
    try:
        for entry in store.scan(position):
            if entry.turn > begins + 1:
                break
            last = entry.position
    except RecordCorrupt:
        return begins
    return last


# ── positions and times ────────────────────────────────────────────────────────────────────────────────────────────


class _Times:
    """Looks up the times of entries."""

    def __init__(self, store: ChainedStore, cut: Cut) -> None:
        self._store, self._cut = store, cut

    def at(self, position: int) -> int:
        """Returns the time of the last stored entry up to a position, 0 for none."""
        cut = self._cut
        if cut.base and position == cut.base:
            return cut.at
        found = _one(self._store, _BEFORE, position) if position > cut.moved else None
        if found is None and cut.base:
            found = _one(self._store, _KEPT_BEFORE, position)
        return found.at if found is not None else 0

    def last_at(self, first: int, last: int, time: int) -> int:
        """Returns the last position after `first` whose entry is not later than `time`; `first` if there is none.

        Time never goes backwards in a record, so that position ends a turn.
        """
        return first + bisect_right(range(first + 1, last + 1), time, key=self.at)

    def oldest(self) -> int:
        found = _one(self._store, _FIRST_KEPT, self._cut.after) if self._cut.base else None
        found = found if found is not None else _one(self._store, _FIRST, self._cut.base)
        return found.at if found is not None else self._cut.at


_BEFORE = "SELECT state FROM stored_events WHERE {position} <= ? ORDER BY {position} DESC LIMIT 1"
_KEPT_BEFORE = "SELECT state FROM history WHERE position <= ? ORDER BY position DESC LIMIT 1"
_FIRST = "SELECT state FROM stored_events WHERE {position} > ? ORDER BY {position} LIMIT 1"
_FIRST_KEPT = "SELECT state FROM history WHERE position > ? ORDER BY position LIMIT 1"


def _one(store: ChainedStore, statement: str, position: int) -> Entry | None:
    with store.session() as session:
        rows = session.run(statement, position)
    return CODEC.decode(rows[0][0]) if rows else None


def _turn_end(store: ChainedStore, position: int) -> int:
    """Returns the last position of the turn that the entry at `position` belongs to."""
    end = position
    for entry in store.scan(position - 1):
        if entry.position > position and entry.turn == entry.position:
            break
        end = entry.position
    return end


def _latest(candidates: Sequence[int] | None, position: int) -> int:
    """Returns the latest candidate up to a position, 0 for none."""
    if candidates is None:
        return position
    index = bisect_right(candidates, position)
    return candidates[index - 1] if index else 0


def _next(candidates: Sequence[int], position: int, otherwise: int) -> int:
    """Returns the first candidate from a position on, or else the last one."""
    index = bisect_left(candidates, position)
    return candidates[min(index, len(candidates) - 1)] if candidates else otherwise
