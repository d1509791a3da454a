"""The state of a long record every few thousand entries, so that any moment is near one.

A record keeps a few snapshots, the further apart the older. To fold what lies between takes a second in a record of a
million entries. While somebody looks at it, the explorer folds it once, and keeps the states on the way, in memory.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator

from msgspec import Struct

from kerf.adapters.store.compression import pack, unpack
from kerf.adapters.store.open import AnyStore
from kerf.adapters.store.snapshots import Snapshot
from kerf.engine.errors import KerfError
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import INCONSISTENT
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.load import beginning
from kerf.engine.state.state import State

SHORT = 20_000
"""A record of no more entries is folded in a moment."""
APART = 5_000  # entries
MOST_BYTES = 64 << 20
_QUICKLY = 1  # how hard they are compressed
_AT_A_TIME = 200


class _Kept(Struct, frozen=True):
    """A state as of the entry at `position`, packed in one of the ways of `compression`."""

    position: int
    way: int
    size: int
    packed: bytes
    digest: str


class NearStates:
    """Folds one record from its beginning, and keeps states. They are told wherever a snapshot of the store would be:
    whatever loads a state is then near one."""

    def __init__(self, store: AnyStore, allowed: Callable[[], float] = lambda: float("inf")) -> None:
        """`allowed` tells how many seconds of CPU time may go into it by now."""
        self._store = store
        self._allowed, self._spent, self._ended = allowed, 0.0, False
        self._kept: list[_Kept] = []
        self._bytes = 0
        self._state: State | None = None
        self._entries: Iterator[Entry] = iter(())
        store.nearer = self._nearer

    def _nearer(self, until: int | None, schema: str, stored: Snapshot | None) -> Snapshot | None:
        """Return the store's own snapshot, or a state that is kept here and is nearer."""
        if schema != snapshot.SCHEMA:
            return stored
        index = len(self._kept) if until is None else bisect_right(self._kept, until, key=lambda kept: kept.position)
        if not index or (stored is not None and stored[0] >= self._kept[index - 1].position):
            return stored
        kept = self._kept[index - 1]
        return kept.position, unpack(kept.way, kept.size, kept.packed), kept.digest

    def advance(self, seconds: float) -> bool:
        """Fold on for some time. Return whether all is folded that is there, or can be: what is damaged is told by
        whoever reads it."""
        store, began, done = self._store, time.thread_time(), False
        if self._ended or store.last_position() - store.first_position() < SHORT:
            return True
        try:
            self._state = self._state or beginning(store)
            done = self._fold(self._state, time.monotonic() + seconds)
        except (KerfError, *INCONSISTENT):
            self._ended = True
        self._spent += time.thread_time() - began
        self._ended |= self._bytes > MOST_BYTES or self._spent > self._allowed()
        return self._ended or done

    def _fold(self, state: State, until: float) -> bool:
        """Fold on. Return whether there is no more."""
        while time.monotonic() < until:
            for _ in range(_AT_A_TIME):
                entry = next(self._entries, None)
                if entry is None:
                    break
                if entry.turn == entry.position and entry.position - self._latest() > APART:
                    self._keep(state)
                evolve(state, entry)
            else:
                continue
            if state.facts.position >= self._store.last_position():
                return True
            self._entries = self._store.scan(state.facts.position)
        return False

    def _latest(self) -> int:
        return self._kept[-1].position if self._kept else 0

    def _keep(self, state: State) -> None:
        data, digest = snapshot.encode(state)
        way, packed = pack(data, _QUICKLY)
        self._kept.append(_Kept(state.facts.position, way, len(data), packed, digest))
        self._bytes += len(packed)
