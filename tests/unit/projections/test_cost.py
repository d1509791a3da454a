"""Cost is price × time, by claim, pool and hour."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kerf.engine.record.claim_events import Adopted, InstanceVanished, Launched, Requested, Terminated
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF
from kerf.projections.cost import HOUR_MS, CostFold
from tests.support.records import whole_life
from tests.support.world import NODE_CLASS


def entry(position: int, at: int, payload: Struct) -> Entry:
    name = NAME_OF[type(payload)]
    return Entry(position, position, "s", position, name, 1, at, 0, 1, payload)


def requested(claim: str, pool: str) -> Requested:
    return Requested(claim, pool, NODE_CLASS, (), (), {}, (), 0.0, 1)


def launched(claim: str, price: float) -> Launched:
    return Launched(claim, f"i-{claim}", "", "m5.large", "a", "spot", price, {}, {})


def folded(*events: tuple[int, Struct]) -> CostFold:
    cost = CostFold()
    for position, (at, payload) in enumerate(events, 1):
        cost.apply(entry(position, at, payload))
    return cost


def test_a_life_costs_what_its_last_event_says() -> None:
    store = whole_life().store
    cost = CostFold()
    for stored in store.entries:
        cost.apply(stored)
    assert cost.total() == pytest.approx(store.entries[-1].payload.cost, abs=1e-6)
    assert cost.rate() == 0.0


def test_what_runs_costs_until_now() -> None:
    cost = folded((0, requested("a", "p")), (0, launched("a", 0.5)), (2 * HOUR_MS, requested("b", "p")))
    assert cost.total() == 1.0
    assert cost.total(4 * HOUR_MS) == 2.0
    assert cost.rate() == 0.5


def test_by_pool_and_by_hour() -> None:
    cost = folded(
        (0, requested("a", "x")),
        (HOUR_MS // 2, launched("a", 1.0)),
        (HOUR_MS // 2, requested("b", "y")),
        (HOUR_MS, launched("b", 0.25)),
        (2 * HOUR_MS, Terminated("a", "empty")),
        (3 * HOUR_MS, InstanceVanished("b", "i-b")),
    )
    report = cost.report()
    assert report.pools == {"x": 1.5, "y": 0.5}
    assert list(report.claims) == ["a", "b"], "dearest first"
    assert [(h.at // HOUR_MS, h.cost, h.pools) for h in report.hours] == [
        (0, 0.5, {"x": 0.5}),
        (1, 1.25, {"x": 1.0, "y": 0.25}),
        (2, 0.25, {"y": 0.25}),
    ]


def test_an_adopted_claim_costs_from_when_it_was_found() -> None:
    adopted = Adopted("a", "initialized", "p", NODE_CLASS, price=2.0, created=1)
    assert folded((HOUR_MS, adopted), (2 * HOUR_MS, requested("b", "p"))).total() == 2.0


def test_a_claim_that_was_never_launched_costs_nothing() -> None:
    assert folded((0, requested("a", "p")), (HOUR_MS, requested("b", "p"))).report().total == 0.0


@given(
    st.lists(
        st.tuples(st.integers(0, 10 * HOUR_MS), st.integers(0, 10 * HOUR_MS), st.floats(0.001, 100)),
        min_size=1,
        max_size=12,
    )
)
def test_the_hours_add_up_to_the_total(lives: list[tuple[int, int, float]]) -> None:
    cost = CostFold()
    for number, (start, length, price) in enumerate(lives):
        cost.apply(entry(1, start, launched(str(number), price)))
        cost.apply(entry(2, start + length, Terminated(str(number), "empty")))
    cost.at = 20 * HOUR_MS
    assert sum(hour.cost for hour in cost.hours()) == pytest.approx(cost.total())
    assert sum(cost.report().pools.values()) == pytest.approx(cost.total())
