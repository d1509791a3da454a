"""The difference between two moments of a record."""

from __future__ import annotations

from kerf.engine.record.claim_events import InstanceVanished, LaunchFailed, LaunchTimedOut, ReasonRaised, Tainted
from kerf.engine.record.store import Store
from kerf.projections.differences.state_difference import state_difference
from kerf.projections.differences.structs import StateDifference
from kerf.projections.prose.amounts import moment
from kerf.replay.errors import PositionUnknown
from kerf.replay.time_travel.moments import Moment, state_at
from kerf.replay.time_travel.record_beginning import settings_at


def difference_of(store: Store, before: Moment, after: Moment) -> StateDifference:
    """Return what is different at the later moment. Raises PositionUnknown (KERF202) if that comes first, and
    RecordShortened (KERF118) for a moment before the record's base."""
    if (after.position, after.at) < (before.position, before.at):
        raise PositionUnknown(
            f"{moment(before.at)} (position {before.position}) is later than {moment(after.at)} (position "
            f"{after.position})",
            hint="Give the earlier moment first",
        )
    was, now = (state_at(store, found.position, found.at) for found in (before, after))
    was.facts.settings = settings_at(store, was)
    now.facts.settings = settings_at(store, now)
    return state_difference(was, now, _reasons(store, before.position, after.position))


def _reasons(store: Store, after: int, until: int) -> dict[str, str]:
    """Return by claim the latest reason for which it had to go, as far as that was recorded in between."""
    reasons: dict[str, str] = {}
    for entry in store.scan(after, until):
        event = entry.payload
        if isinstance(event, Tainted | ReasonRaised):
            reasons[event.claim] = event.why
        elif isinstance(event, LaunchFailed | LaunchTimedOut | InstanceVanished):
            reasons.setdefault(event.claim, _ENDED[type(event)])
    return reasons


_ENDED: dict[type, str] = {
    LaunchFailed: "launch-failed",
    LaunchTimedOut: "launch-timeout",
    InstanceVanished: "instance-vanished",
}
