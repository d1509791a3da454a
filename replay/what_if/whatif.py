"""`kerf whatif`: the next decision after a moment of a record, with something changed, beside the one without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.record.decisions import Decision
from kerf.engine.record.store import Store
from kerf.replay.what_if.changes import Change
from kerf.replay.what_if.comparison import Difference, differences
from kerf.replay.what_if.export.scenario import Exported, scenario_of
from kerf.replay.what_if.next_decision import (
    ALIKE_WITHIN,
    Course,
    LeftOut,
    changed_state,
    following_pass,
    next_decision,
    turn_of,
)
from kerf.replay.what_if.outcome import (
    Outcome,
    changed_prices,
    going_claims,
    outcome_of,
    running_price,
    waiting_pods,
)
from kerf.replay.what_if.reasons_to_stay import with_reasons_to_stay

EXACT = "the next decision alone"


class WhatIf(Struct, frozen=True, kw_only=True):
    """The answer. Times are ms since the epoch, prices USD per hour.

    `position` and `at` are those of the moment; `changes` say from what to what. `unchanged` is the next decision
    without the change, `changed` the one with it. `compared`: whether they answer the same question; if not, the one
    without the change is still to come, and the plan says what the change brings about. `differences` is the plan.
    `price` is what the nodes cost at the moment. `exact` says how much of this is exact.
    `then` is the provisioning pass for the pods of nodes that go, as if nothing else happened: it is not exact.
    `older` names deciders that the record has in an older version: both decisions are those of today's.
    `as_recorded`: whether the record holds the decision without the change, or ends before it.
    `going` are the claims that go already at the moment: they count in no price.
    `left_out` is what the record changes, up to the decision, of objects that are changed here: the change stays.
    """

    position: int
    at: int
    changes: tuple[str, ...]
    price: float
    unchanged: Outcome
    changed: Outcome
    compared: bool
    differences: tuple[Difference, ...]
    exact: str = EXACT
    then: Outcome | None = None
    older: tuple[str, ...] = ()
    as_recorded: bool = True
    going: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def what_if(store: Store, position: int, changes: Sequence[Change], now: int = 0) -> WhatIf:
    """Make the next decision after `position` with these changes, and without them. `now` is the time of the change
    (ms since the epoch). Without one, a position that holds a decision is that from before it: it is made again.

    Raises ChangeRefused (KERF208), RecordShortened (KERF118), DecidedByNewer (KERF209).
    """
    moment = turn_of(store, position, again=not now)
    plain = next_decision(store, moment, now=now)
    other = next_decision(store, moment, changes, now=now)
    prices = changed_prices(plain.before, other.before)
    unchanged = outcome_of(plain, _recorded(store, plain), {})
    changed = outcome_of(other, _recorded(store, other), prices)
    compared = _same_question(unchanged, changed)
    old = unchanged if compared else _nothing(unchanged, running_price(plain.before, {}))
    found = with_reasons_to_stay(differences(old, changed, waiting_pods(plain.before)), other.after, other.at)
    return WhatIf(
        position=moment,
        at=max(now, plain.before.facts.at),
        changes=tuple(applied.said for applied in other.applied),
        price=running_price(plain.before, {}),
        unchanged=unchanged,
        changed=changed,
        compared=compared,
        differences=found,
        then=_then(changed, other, prices),
        older=plain.older,
        as_recorded=bool(unchanged.position) or not unchanged.deciders or plain.at > _end(store),
        going=going_claims(plain.before),
        left_out=other.left_out,
    )


def export_moment(store: Store, position: int, changes: Sequence[Change], now: int = 0) -> Exported:
    """Write the moment, with these changes, as a scenario for `kerf plan` and `kerf disrupt`. Raises as `what_if`
    does."""
    moment = turn_of(store, position, again=not now)
    state, _ = changed_state(store, moment, changes, now=now)
    return scenario_of(state, max(now, state.facts.at), f"position {moment}")


def _then(changed: Outcome, course: Course, prices: Mapping[str, float]) -> Outcome | None:
    """Where the pods of nodes that go would be planned to, if the next decision does not say that already."""
    if not changed.evictions or changed.places:
        return None
    following = following_pass(course)
    return None if following is None else outcome_of(following, {}, prices)


def _end(store: Store) -> int:
    last = store.last_position()
    return next((entry.at for entry in store.scan(last - 1, last)), 0)


def _same_question(unchanged: Outcome, changed: Outcome) -> bool:
    if not changed.deciders or not unchanged.deciders:
        return True
    return changed.at >= unchanged.at - ALIKE_WITHIN and bool({*unchanged.deciders} & {*changed.deciders})


def _nothing(outcome: Outcome, price: float) -> Outcome:
    return replace(
        outcome, deciders=(), launched=(), leaving=(), places={}, waiting=(), stays={}, price=price, evictions=0
    )


def _recorded(store: Store, course: Course) -> dict[int, Decision]:
    """Return the record's decisions where the course has one."""
    positions = [entry.position for entry in course.decisions]
    if not positions:
        return {}
    return {
        entry.position: entry.payload
        for entry in store.scan(min(positions) - 1, max(positions))
        if isinstance(entry.payload, Decision)
    }
