"""The log of a part of a record, without reading what is before it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from kerf.adapters.store.open import AnyStore
from kerf.engine.record.entries import Entry
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import load
from kerf.projections.prose.amounts import moment
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.errors import PositionUnknown
from kerf.replay.history.story import timeline_from_base
from kerf.replay.time_travel.moments import locate
from kerf.replay.time_travel.record_beginning import state_as_entries

FAR = 20_000
"""So many entries are read from the record's beginning rather than from a snapshot: then what is told again is counted
from there, too."""
_BEFORE = 60_000  # ms: effects within it are known by their intents


def entries_since(store: AnyStore, since: int) -> tuple[Iterator[Entry], Timeline]:
    """Return entries that begin before `since` (ms since the epoch), and a timeline that knows what was before them."""
    try:
        position = locate(store, moment(since - _BEFORE)) if since else 0
    except PositionUnknown:
        position = 0  # before the record begins
    if position - store.first_position() < FAR:
        return store.scan(), timeline_from_base(store)
    facts, blobs = load(store, position).facts, Blobs(store.blob)
    timeline = Timeline(blobs.shape, blobs.node_class)
    for entry in chain(store.scan(until=1), state_as_entries(facts, position, facts.at)):
        timeline.apply(entry)
    return store.scan(position), timeline
