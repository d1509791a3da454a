"""A Kubernetes Event: about which object, what it says, and how often it may be sent."""

from __future__ import annotations

from msgspec import Struct

NORMAL, WARNING = "Normal", "Warning"


MINUTE = 60_000


class ObjectReference(Struct, frozen=True):
    """The object. `uid` is empty where the record does not have it (NodeClaims)."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class KubernetesEvent(Struct, frozen=True):
    """One event to be. Events of one `key` within `window` (ms) of the first are one; `limit` names a rate that is
    shared, or is empty."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    key: tuple[str, ...]
    window: int = 2 * MINUTE
    limit: str = ""
