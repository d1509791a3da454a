"""The state of a long record every few thousand entries, so that any moment is near one.

A record keeps a few snapshots, the further apart the older. To fold what lies between takes a second in a record of a
million entries. While somebody looks at it, the explorer folds it once, and keeps the states on the way, in memory.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator

import zstandard
from msgspec import Struct

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
APART = 2_000  # entries
MOST_BYTES = 64 << 20
_LIKE_ONE = 16
"""So many states are packed as what is different in them from the first of them: a tenth of the bytes."""
_QUICKLY = 1  # how hard the first one is compressed
_DIFFERENCES = zstandard.ZstdCompressionParameters.from_level(3, window_log=24, hash_log=20, chain_log=20)
"""The window holds two states, so that whatever is the same in both is found."""
_AT_A_TIME = 200


class _Kept(Struct, frozen=True):
    """A state as of the entry at `position` and its time, packed: by itself, or beside the one of `like`."""

    position: int
    at: int
    packed: bytes
    like: _Kept | None = None


class NearStates:
    """Folds one record from its beginning, and keeps states. They are told wherever a snapshot of the store would be:
    whatever loads a state is then near one."""

    def __init__(self, store: AnyStore, allowed: Callable[[], float] = lambda: float("inf")) -> None:
        """`allowed` tells how many seconds of CPU time may go into it by now."""
        self._store = store
        self._allowed, self._spent, self._ended = allowed, 0.0, False
        self._kept: list[_Kept] = []
        self._first: tuple[_Kept, bytes] | None = None  # the latest that was packed by itself, and its bytes
        self._bytes = 0
        self._state: State | None = None
        self._entries: Iterator[Entry] = iter(())
        store.nearer = self._nearer

    def _nearer(self, until: int | None, schema: str) -> Snapshot | None:
        """Return the latest state that is kept here. It has no digest: nobody else has had it."""
        if schema != snapshot.SCHEMA:
            return None
        index = len(self._kept) if until is None else bisect_right(self._kept, until, key=lambda kept: kept.position)
        return (self._kept[index - 1].position, _unpacked(self._kept[index - 1]), "") if index else None

    def around(self, time: int) -> tuple[int, int]:
        """Return between which positions the last entry at or before a time is, as far as the states tell."""
        index = bisect_right(self._kept, time, key=lambda kept: kept.at)
        begin = self._kept[index - 1].position if index else 0
        return begin, self._kept[index].position if index < len(self._kept) else sys.maxsize

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
        position, at, (data, _) = state.facts.position, state.facts.at, snapshot.encode(state)
        if self._first is None or not len(self._kept) % _LIKE_ONE:
            kept = _Kept(position, at, _packed(data, zstandard.ZstdCompressor(level=_QUICKLY)))
            self._first = kept, data
        else:
            first, beside = self._first
            compressor = zstandard.ZstdCompressor(compression_params=_DIFFERENCES, dict_data=_as_dictionary(beside))
            kept = _Kept(position, at, _packed(data, compressor), first)
        self._kept.append(kept)
        self._bytes += len(kept.packed)


def _packed(data: bytes, compressor: zstandard.ZstdCompressor) -> bytes:
    """Compress. The library answers with room for data that cannot be compressed, a hundred times as much as is used
    here, so what is kept is a copy."""
    return bytes(memoryview(compressor.compress(data)))


def _unpacked(kept: _Kept) -> bytes:
    """Return a state that this process has packed: it is believed."""
    if kept.like is None:
        return zstandard.ZstdDecompressor().decompress(kept.packed)
    beside = _as_dictionary(_unpacked(kept.like))
    return zstandard.ZstdDecompressor(dict_data=beside).decompress(kept.packed)


def _as_dictionary(data: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
