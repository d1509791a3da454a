"""How the fold keeps objects of kinds without rules of their own: by key, and plans are made anew when one changes."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import Struct

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import free_capacity_changed, has_active_buffers, note_disruption_change
from kerf.engine.state.state import State


class ObjectRules(Struct, frozen=True):
    """What the fold does with an object that was seen, and with the key of one that is gone."""

    seen: Callable[[State, Any, Entry], None]
    gone: Callable[[State, str, Entry], None]


def keeping(kind: WatchedKind) -> ObjectRules:
    """The rules of a kind that is only kept."""
    table = attrgetter(kind.facts)
    key_of = attrgetter(kind.key)

    def seen(state: State, item: Any, entry: Entry) -> None:
        key, known = key_of(item), table(state.facts)
        if known.get(key) != item:
            known[key] = item
            plans_changed(state, kind, entry)

    def gone(state: State, key: str, entry: Entry) -> None:
        if table(state.facts).pop(key, None) is not None:
            plans_changed(state, kind, entry)

    return ObjectRules(seen, gone)


def plans_changed(state: State, kind: WatchedKind, entry: Entry) -> None:
    """An object of this kind is another, or gone: plans are made anew, if one looks at it."""
    facts, indexes = state.facts, state.indexes
    if kind.planned_with is None or not kind.planned_with(facts.settings, has_active_buffers(facts)):
        return
    asked_for_by = kind.asked_for_by
    if asked_for_by is None:
        free_capacity_changed(state, entry.at)
        return
    note_disruption_change(facts, entry.at)
    if facts.batch_last == entry.at:  # the window knows already
        return
    if indexes.going or any(asked_for_by(indexes.blobs.shape(facts.pods[uid].shape)) for uid in indexes.pending):
        free_capacity_changed(state, entry.at)
