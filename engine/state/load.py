"""The state at a position, from a store: the latest usable snapshot, then the entries after it."""

from __future__ import annotations

from collections.abc import Callable

from kerf.engine.errors import summary_of
from kerf.engine.record.errors import INCONSISTENT, RecordCorrupt, RecordShortened
from kerf.engine.record.store import Store
from kerf.engine.state import snapshot
from kerf.engine.state.base import restore
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State

Progress = Callable[[int], None]
"""Called with the position reached, every few thousand entries."""
PROGRESS_EVERY = 5_000


def empty(store: Store) -> State:
    return State(Facts(), Blobs(store.blob))


def beginning(store: Store) -> State:
    """The state before the first entry that can be folded: that of the base, or nothing."""
    base = store.base()
    return empty(store) if base is None else restore(base, Blobs(store.blob))


def load(
    store: Store, until: int | None = None, *, use_snapshots: bool = True, progress: Progress | None = None
) -> State:
    """The state after the entry at `until` (the end by default). Raises StoreError on a broken record,
    TransitionRefused (KERF701) for a claim event that the state table does not allow, and RecordShortened (KERF118)
    for a position before its base.

    A snapshot that does not match its digest or cannot be read is dropped: it is only a cache.
    """
    state = _from_snapshot(store, until) if use_snapshots else None
    if state is None:
        state = beginning(store)
    if until is not None and until < state.facts.position:
        raise shortened(until, state.facts.position)
    for entry in store.scan(state.facts.position, until):
        try:
            evolve(state, entry)
        except INCONSISTENT as error:
            what = f"the entry does not follow from those before it: {summary_of(error)}"
            raise RecordCorrupt(what, position=entry.position, hint="Ask about an earlier position") from error
        if progress is not None and entry.position % PROGRESS_EVERY == 0:
            progress(entry.position)
    return state


def shortened(position: int, base: int) -> RecordShortened:
    return RecordShortened(
        "the state of then is not known: the record was cut, or is a part of one",
        position=position,
        hint=f"It begins after position {base}; of what was before, kerf log tells what is kept",
    )


def _from_snapshot(store: Store, until: int | None) -> State | None:
    found = store.snapshot(until, snapshot.SCHEMA)
    if found is None:
        return None
    position, data, digest = found
    try:
        state = snapshot.decode(data, Blobs(store.blob))
    except INCONSISTENT:
        return None
    if state.facts.position != position or (digest and snapshot.digest(state) != digest):
        return None
    return state
