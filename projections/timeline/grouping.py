"""Join the events that one turn tells of several pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kerf.projections.timeline.event import Event


def group_events(events: Iterable[Event]) -> Iterator[Event]:
    """Join events of one turn that say the same of several pods, or of what is done to several pods of one claim.

    The first pod's event stands for all. The other pods are related to it, and `params["more"]` counts them. What comes
    before an error of the events, as of a damaged record, is given before it is raised.
    """
    alike: list[Event] = []
    likeness: tuple[object, ...] | None = None
    try:
        for event in events:
            this = _likeness(event)
            if alike and this != likeness:
                yield _joined(alike)
                alike = []
            if this is None:
                yield event
            else:
                alike.append(event)
                likeness = this
    except Exception:
        if alike:
            yield _joined(alike)
        raise
    if alike:
        yield _joined(alike)


def _joined(alike: list[Event]) -> Event:
    first, *rest = alike
    if not rest:
        return first
    others = (name for other in rest for name in (other.subject, *other.related) if name.startswith("pod/"))
    related = dict.fromkeys((*first.related, *others))
    return replace(first, related=tuple(related), params={**first.params, "more": len(rest)})


def _likeness(event: Event) -> tuple[object, ...] | None:
    if event.subject.startswith("pod/"):
        return event.turn, event.code, sorted(event.params.items(), key=str)
    if "pod" not in event.params:
        return None
    params = ((name, value) for name, value in event.params.items() if name != "pod")
    return event.turn, event.code, event.subject, sorted(params, key=str)
