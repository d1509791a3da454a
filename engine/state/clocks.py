"""The fold of what is known of the clocks: whether they agree, and time that goes back.

Between two entries `TimeSetBack` times never decrease. At one of them the record was ahead of the clock: what was
measured by that clock is moved back by as much, so that ages and pauses stay as long as they were. What was measured
while the clocks differed is moved forward when time is set forward: the time was behind (ADR 9).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kerf.engine.model.karpenter.nodepool_health import PoolHealth
from kerf.engine.nodeclaim.claim import Effect, NodeClaim
from kerf.engine.record import observations as seen
from kerf.engine.record.entries import Entry
from kerf.engine.state.nodeclaims.messages import index_messages
from kerf.engine.state.objects.static_nodepools import look_at_all_pools
from kerf.engine.state.state import Asked, Facts, Found, GroupLacks, Hold, Orphan, Search, State, StaticPool, Underway

ENDLESS = 1 << 60
"""Times from here on stand for "never": they are not moved."""

TIMES: dict[type[Struct], tuple[str, ...]] = {
    Facts: (
        "unavailable", "full_subnets", "refused_since", "subnets_full_since", "messages", "batch_opened", "batch_last",
        "arrived_at", "refused_at", "rest_at", "retry_at", "plan_at", "moves_changed", "moves_looked", "moves_look_at",
        "clocks_differ",
    ),
    NodeClaim: (
        "since", "created", "launched", "registered", "initialized", "tainted", "drain_started", "drained", "detached",
        "answered", "unlisted", "nominated_until", "last_pod_event", "drifted_since", "repair_told",
        "inconsistent_changed",
    ),
    Effect: ("asked", "answered", "retry_at", "began", "was_accepted"),
    Asked: ("at",),
    Orphan: ("retry_at",),
    Found: ("at",),
    Search: ("at",),
    Underway: ("at",),
    Hold: ("since", "until"),
    StaticPool: ("retry_at",),
    GroupLacks: ("unavailable", "refused_since"),
    PoolHealth: ("first_seen", "since", "changed"),
}  # fmt: skip
"""What the state measures by the controller's time: the fields of each struct (`Facts` has maps of times among them).

Times that the API server or the cloud have given stay as they are.
"""

HOLDERS = (
    "claims", "lone", "intents", "orphans", "found", "searches", "moves", "holds", "static", "health",
    "placement_groups",
)  # fmt: skip
"""Maps of `Facts` whose values have times."""


def clocks_differ(state: State, differ: seen.ClocksDiffer, entry: Entry) -> None:
    """What goes on otherwise while the clocks differ is looked at."""
    if state.facts.clocks_differ and differ.moved > 0:
        _move(state, state.facts.clocks_differ - 1, differ.moved)
    if not state.facts.clocks_differ:
        state.facts.clocks_differ = entry.at
        _look_at_everything(state, entry)


def clocks_agree(state: State, agree: seen.ClocksAgree, entry: Entry) -> None:
    """What was held back meanwhile is looked at."""
    state.facts.clocks_differ = 0
    if agree.since and agree.moved > 0:
        _move(state, agree.since - 1, agree.moved)
    _look_at_everything(state, entry)


def time_set_back(state: State, back: seen.TimeSetBack, entry: Entry) -> None:
    """Moves what lies ahead of the new time back. What lies before it was measured by a clock that was right."""
    _move(state, entry.at, entry.at - back.was)
    state.indexes.due.clear()
    _look_at_everything(state, entry)


def _look_at_everything(state: State, entry: Entry) -> None:
    state.indexes.touched.update(dict.fromkeys(state.facts.claims, entry.position))
    look_at_all_pools(state)


def _move(state: State, after: int, by: int) -> None:
    """Moves all times that lie after `after` by so much (ms)."""
    facts = state.facts
    _move_times(facts, after, by)
    for name in HOLDERS:
        holder: dict[str, Any] = getattr(facts, name)
        for key, value in holder.items():
            holder[key] = _moved(value, after, by)
    for claim in (*facts.claims.values(), *facts.lone.values()):
        _move_deadline(claim, after, by)
        for effect in claim.effects.values():
            _move_times(effect, after, by)
    index_messages(state)


def _moved(value: Any, after: int, by: int) -> Any:
    """The struct itself if it can change, else a copy."""
    if not value.__struct_config__.frozen:
        _move_times(value, after, by)
        return value
    times = {field: getattr(value, field) for field in TIMES[type(value)]}
    return msgspec.structs.replace(value, **{field: _at(time, after, by) for field, time in times.items()})


def _move_times(struct: Struct, after: int, by: int) -> None:
    for field in TIMES[type(struct)]:
        time = getattr(struct, field)
        if isinstance(time, dict):
            time.update({key: _at(value, after, by) for key, value in time.items()})
        else:
            setattr(struct, field, _at(time, after, by))


def _move_deadline(claim: NodeClaim, after: int, by: int) -> None:
    """A deadline moves with the time that its grace period is counted from: pods never have less than that."""
    if claim.deadline is not None and claim.deadline - (claim.termination_grace_period or 0) > after:
        claim.deadline += by


def _at(time: int, after: int, by: int) -> int:
    return time + by if after < time < ENDLESS else time
