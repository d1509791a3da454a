"""Tell of the objects of which the timeline tells nothing else: that they are there, what changes in them, that they
go."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import NODE, NODECLAIM, NODEPOOL, POD, WATCHED
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone, RecordStarted
from kerf.projections.differences.documents import Shapes, changed_fields, document_of
from kerf.projections.differences.field_changes import flat
from kerf.projections.timeline.entry_events import EVENTS_OF_ENTRY, make_event
from kerf.projections.timeline.event import DEBUG, INFO, Event, Parameter

_COMPARED = {kind.struct: kind for kind in WATCHED if kind not in (NODE, NODECLAIM, NODEPOOL, POD)}
_CALLED = {kind.name: kind.served[0].api.rpartition("/")[2] for kind in WATCHED}
"""The kinds as users call them, by their names in records."""
_ASKED_BY_A_NEW_ONE = (
    "maxUnavailable", "minAvailable", "template.requests.",
    "price", "adjustment.", "capacity.", "requirements[",
    "replicas", "percentage",
)  # fmt: skip
"""The fields that are told of a new object begin so: a whole template would be a page."""


class ChangedObjects:
    """Remembers each object, to tell a change from a repetition, and a new object from one of the first lists."""

    def __init__(self, shapes: Shapes | None = None) -> None:
        self._shapes = shapes
        self._objects: dict[tuple[str, str], Any] = {}  # by kind and key
        self.listed = False
        """Whether the first lists are over. There, these objects come before Nodes; decisions come after all."""
        self._partial = False  # imported: what is seen first may be old

    def apply(self, entry: Entry) -> list[Event] | None:
        """Return the events of an object that is seen; None for any other entry."""
        kind = _COMPARED.get(type(entry.payload))
        if isinstance(entry.payload, RecordStarted):
            self._partial = entry.payload.imported is not None
        return None if kind is None else self._seen(kind, entry.payload, entry)

    def gone(self, gone: ObjectGone, entry: Entry) -> list[Event]:
        """Tell that an object is gone: by its name, if it was seen."""
        old = self._objects.pop((gone.kind, gone.key), None)
        if old is None:
            kind = _CALLED.get(gone.kind, gone.kind)
            return [make_event(entry, "object-gone", DEBUG, f"{gone.kind}/{gone.key}", kind=kind)]
        watched = _COMPARED[type(old)]
        level = INFO if watched.announced or watched.spec else DEBUG
        return [
            make_event(entry, "object-gone", level, event.subject, kind=watched.struct.__name__)
            for event in EVENTS_OF_ENTRY[watched.struct](old, entry)
        ]

    def _seen(self, kind: WatchedKind, obj: Any, entry: Entry) -> list[Event]:
        key = kind.name, str(getattr(obj, kind.key))
        old = self._objects.get(key)
        self._objects[key] = obj
        first = EVENTS_OF_ENTRY[type(obj)](obj, entry)
        if old is None:
            created = (kind.spec or kind.announced) and self.listed and not self._partial
            return [self._created(obj, entry, event) for event in first] if created else first
        written = kind.announced or any(getattr(old, name) != getattr(obj, name) for name in kind.spec)
        fields, level = changed_fields(old, obj, self._shapes), INFO if written else DEBUG
        return [
            make_event(entry, "object-fields-changed", level, event.subject, kind=type(obj).__name__, fields=fields)
            for event in first
            if fields
        ]

    def _created(self, obj: Any, entry: Entry, first: Event) -> Event:
        told = flat(document_of(obj, self._shapes)).items()
        fields = [f"{path} {text}" for path, text in told if path.startswith(_ASKED_BY_A_NEW_ONE)]
        params: dict[str, Parameter] = {"fields": fields} if fields else {}
        return make_event(entry, "object-created", INFO, first.subject, (), kind=type(obj).__name__, **params)
