"""The state of a long record every few thousand entries, so that any moment is near one.

A record keeps a few snapshots, the further apart the older. To fold what lies between takes a second in a record of a
million entries. While somebody looks at it, the explorer folds it once, and keeps the states on the way, in memory.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator

from kerf.adapters.store.compression import pack, unpack
from kerf.adapters.store.open import AnyStore
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
Snapshot = tuple[int, bytes, str]


class NearStates:
    """Folds one record from its beginning, and keeps states. They are told wherever a snapshot of the store would be:
    whatever loads a state is then near one."""

    def __init__(self, store: AnyStore, allowed: Callable[[], float] = lambda: float("inf")) -> None:
        """`allowed` tells how many seconds of CPU time may go into it by now."""
        self._store, self._stored = store, store.snapshot
        self._allowed, self._spent, self._ended = allowed, 0.0, False
        self._positions: list[int] = []
        self._kept: list[tuple[int, int, bytes, str]] = []  # how each is packed, its size, itself, its digest
        self._bytes = 0
        self._state: State | None = None
        self._entries: Iterator[Entry] = iter(())
        store.snapshot = self.nearest  # type: ignore[method-assign]

    def nearest(self, until: int | None, schema: str) -> Snapshot | None:
        """Return what `Store.snapshot` does, or a state that is kept here and is nearer."""
        stored = self._stored(until, schema)
        index = bisect_right(self._positions, until) if until is not None else len(self._positions)
        if schema != snapshot.SCHEMA or not index or (stored is not None and stored[0] >= self._positions[index - 1]):
            return stored
        how, size, packed, digest = self._kept[index - 1]
        return self._positions[index - 1], unpack(how, size, packed), digest

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
        return self._positions[-1] if self._positions else 0

    def _keep(self, state: State) -> None:
        data, digest = snapshot.encode(state)
        how, packed = pack(data, _QUICKLY)
        self._positions.append(state.facts.position)
        self._kept.append((how, len(data), packed, digest))
        self._bytes += len(packed)
