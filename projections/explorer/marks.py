"""Which events of the timeline are marks on the explorer's lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from kerf.projections.timeline.event import DEBUG, Event, event_sentence

DECISION, CHANGE, INTERRUPTION, CAPACITY, DRIFT, TROUBLE = (
    "decision", "change", "interruption", "capacity", "drift", "trouble",
)  # fmt: skip
KINDS = {
    "plan-made": DECISION,
    "move-started": DECISION,
    "claim-condemned": DECISION,
    "pool-resized": DECISION,
    "nodepool-seen": CHANGE,
    "nodepool-changed": CHANGE,
    "nodepool-gone": CHANGE,
    "nodeclass-changed": CHANGE,
    "object-created": CHANGE,
    "object-fields-changed": CHANGE,
    "object-gone": CHANGE,
    "deletion-seen": CHANGE,
    "interruption-announced": INTERRUPTION,
    "claim-instance-vanished": INTERRUPTION,
    "offering-refused": CAPACITY,
    "launch-refused": CAPACITY,
    "claim-launch-failed": CAPACITY,
    "claim-drifted": DRIFT,
    "claim-drifted-fields": DRIFT,
    "pods-without-place": TROUBLE,
    "nodeclass-not-ready": TROUBLE,
    "claim-launch-timed-out": TROUBLE,
    "clocks-differ": TROUBLE,
    "watch-gap": TROUBLE,
    "input-refused": TROUBLE,
}
"""Code of an event → kind of its mark. Other events are in the log alone."""


class Mark(Struct, frozen=True, kw_only=True):
    """Something to notice at a time (ms since the epoch), on the lanes of `claims`; on none where there are none.
    `more` counts others of its kind that it stands for."""

    position: int
    at: int
    kind: str
    claims: tuple[str, ...]
    text: str
    more: int = 0


def marks_of(events: Iterable[Event], claims: Callable[[Iterable[str]], tuple[str, ...]]) -> Iterator[Mark]:
    """Give the marks among events. `claims` tells the NodeClaims of an event's subjects. A change that is a detail, as
    one of a status is, is none."""
    for event in events:
        kind = KINDS.get(event.code)
        if kind is not None and not (kind == CHANGE and event.level == DEBUG):
            own = claims((event.subject, *event.related))
            yield Mark(position=event.position, at=event.at, kind=kind, claims=own, text=event_sentence(event))
