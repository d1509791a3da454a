"""The events of a story for the page, in sentences: those that say the same of several pods together."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.projections.timeline.event import Event, event_sentence


class StoryEvent(Struct, frozen=True, kw_only=True):
    """An event of a story. `cause` is the position of what brought it about, 0 for the outside."""

    position: int
    at: int
    level: str
    subject: str
    text: str
    cause: int


def story_events(grouped: Iterable[Event]) -> list[StoryEvent]:
    """Return events as `kerf story` prints them: `group_events` has joined them."""
    return [
        StoryEvent(
            position=event.position,
            at=event.at,
            level=event.level,
            subject=event.subject,
            text=event_sentence(event),
            cause=event.cause,
        )
        for event in grouped
    ]
