"""Fold what went wrong: warnings and errors of the timeline, those that say the same together."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from kerf.projections.timeline.event import ERROR, WARNING, Event, event_sentence

MOST_SUBJECTS = 20
"""At most so many of the things are named that a trouble is about."""
_TOLD_APART = ("effect", "kind", "error", "message")
"""Parameters that make a trouble another one."""


class Trouble(Struct, kw_only=True):
    """Events that say the same: `count` of them between two times (ms since the epoch). `text` is the first one's
    sentence, `positions` are of the first and the last. `subjects` are the first things that they are about, with their
    kind; `others`: there are more."""

    code: str
    why: str
    level: str
    text: str
    since: int
    until: int
    count: int = 0
    positions: tuple[int, int] = (0, 0)
    subjects: list[str] = field(default_factory=list)
    others: bool = False


class TroublesFold:
    """Folds troubles. Give it the events of the timeline with `apply`."""

    def __init__(self) -> None:
        self._troubles: dict[tuple[str, str], Trouble] = {}

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.level in (WARNING, ERROR):
                self._add(event)

    def troubles(self) -> list[Trouble]:
        """Return all troubles in the order in which they came up."""
        return list(self._troubles.values())

    def _add(self, event: Event) -> None:
        why = _why(event)
        trouble = self._troubles.get((event.code, why))
        if trouble is None:
            trouble = self._troubles[event.code, why] = Trouble(
                code=event.code,
                why=why,
                level=event.level,
                text=event_sentence(event),
                since=event.at,
                until=event.at,
                positions=(event.position, event.position),
            )
        trouble.count += 1
        trouble.until, trouble.positions = event.at, (trouble.positions[0], event.position)
        if event.subject not in trouble.subjects:
            if len(trouble.subjects) < MOST_SUBJECTS:
                trouble.subjects.append(event.subject)
            else:
                trouble.others = True


def _why(event: Event) -> str:
    """What tells a trouble from others of its code: the reason's code, or what was done and the first word of what was
    said, which is a code, too. What follows it has names."""
    if event.reason is not None:
        return event.reason.code
    told = (str(event.params[name]).split(maxsplit=1) for name in _TOLD_APART if event.params.get(name))
    return " ".join(words[0] for words in told if words)
