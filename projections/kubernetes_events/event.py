"""A Kubernetes Event: about which object, what it says, and how often it may be sent."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

NORMAL, WARNING = "Normal", "Warning"


MINUTE = 60_000
_MAX_MESSAGE = 1024  # characters of a message, as the API server has it


class ObjectReference(Struct, frozen=True):
    """The object that an Event is about. `uid` is empty where the record does not have it (NodeClaims)."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class KubernetesEvent(Struct, frozen=True):
    """One Event to be sent.

    Events with the same `key` within `window` (ms) of the first are sent once. `limit` names a rate limit that Events
    share, or is empty. `lasting` is what stays of a message that names a time; "" for the whole message. Events of one
    object with the same lasting words are one Event that repeats.
    """

    about: ObjectReference
    type: str
    reason: str
    message: str
    key: tuple[str, ...]
    window: int = 2 * MINUTE
    limit: str = ""
    lasting: str = ""


def shortened(event: KubernetesEvent) -> KubernetesEvent:
    """Return an Event with as much of its message as the API server takes."""
    if len(event.message) <= _MAX_MESSAGE:
        return event
    return replace(event, message=event.message[: _MAX_MESSAGE - 1] + "…")
