"""The state at a position, from a store: the latest usable snapshot, then the entries after it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from kerf.engine.runtime.ports import Store
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State


class Progress(Protocol):
    def __call__(self, position: int) -> None: ...


def empty(store: Store) -> State:
    return State(Facts(), Blobs(store.blob))


def load(store: Store, until: int | None = None, *, use_snapshots: bool = True) -> State:
    """The state after the entry at `until` (the end by default). Raises StoreError on a broken record.

    A snapshot that does not match its digest or cannot be read is dropped: it is only a cache.
    """
    state = _from_snapshot(store, until) if use_snapshots else None
    if state is None:
        state = empty(store)
    for entry in store.scan(state.facts.position, until):
        evolve(state, entry)
    return state


def _from_snapshot(store: Store, until: int | None) -> State | None:
    found = store.snapshot(until, snapshot.SCHEMA)
    if found is None:
        return None
    _, data, digest = found
    try:
        state = snapshot.decode(data, Blobs(store.blob))
    except msgspec.DecodeError:
        return None
    return state if snapshot.digest(state) == digest else None
