"""Tell of the objects of which the timeline tells nothing else: that they are there, and what changes in them."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import NODE, NODECLAIM, NODEPOOL, POD, WATCHED
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.differences.documents import Shapes, changed_fields
from kerf.projections.timeline.entry_events import EVENTS_OF_ENTRY, make_event
from kerf.projections.timeline.event import DEBUG, INFO, Event

_COMPARED = {kind.struct: kind for kind in WATCHED if kind not in (NODE, NODECLAIM, NODEPOOL, POD)}


class ChangedObjects:
    """Remembers each object, to tell a change from a repetition."""

    def __init__(self, shapes: Shapes | None = None) -> None:
        self._shapes = shapes
        self._objects: dict[tuple[str, str], Any] = {}  # by kind and key

    def apply(self, entry: Entry) -> list[Event] | None:
        """Return the events of an object that is seen; None for any other entry."""
        kind = _COMPARED.get(type(entry.payload))
        return None if kind is None else self._seen(kind, entry.payload, entry)

    def forget(self, gone: ObjectGone) -> None:
        self._objects.pop((gone.kind, gone.key), None)

    def _seen(self, kind: WatchedKind, obj: Any, entry: Entry) -> list[Event]:
        key = kind.name, str(getattr(obj, kind.key))
        old = self._objects.get(key)
        self._objects[key] = obj
        first = EVENTS_OF_ENTRY[type(obj)](obj, entry)
        if old is None:
            return first
        written = kind.announced or any(getattr(old, name) != getattr(obj, name) for name in kind.spec)
        fields, level = changed_fields(old, obj, self._shapes), INFO if written else DEBUG
        return [
            make_event(entry, "object-fields-changed", level, event.subject, kind=type(obj).__name__, fields=fields)
            for event in first
            if fields
        ]
