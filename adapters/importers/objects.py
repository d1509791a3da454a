"""Documents of the Kubernetes API as observations, by the decoders that the watches of a cluster have."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kerf.engine.model.kinds.kind import ServedKind, WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.record.observations import ObjectGone

SERVED: dict[tuple[str, str], tuple[WatchedKind, ServedKind]] = {
    (served.group, served.plural): (kind, served) for kind in WATCHED for served in kind.served
}
"""Group and plural → the kind that kerf watches under them."""
BY_API: dict[str, tuple[WatchedKind, ServedKind]] = {
    served.api: (kind, served) for kind in WATCHED for served in kind.served
}
"""apiVersion/Kind → the kind that kerf watches under it."""


def observed(kind: WatchedKind, served: ServedKind, document: dict[str, Any]) -> tuple[Struct, dict[str, Struct]]:
    """The object as a watch would have recorded it, and its blobs. Raises InputError for a document that kerf would
    refuse."""
    version, _, word = served.api.rpartition("/")
    decoded = decode_object({**document, "apiVersion": version, "kind": word}, source="import")
    return (kind.trim(decoded.object) if kind.trim is not None else decoded.object), dict(decoded.blobs)


def gone(kind: WatchedKind, obj: Struct) -> ObjectGone:
    """That the object is no longer there."""
    return ObjectGone(kind.name, getattr(obj, kind.key))
