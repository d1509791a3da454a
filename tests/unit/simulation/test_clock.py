"""Virtual time and named chance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.adapters.simulation import clock as clocks
from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.errors import EndlessLoopError
from kerf.adapters.simulation.seeded_random import SAFE_LETTERS, SeededRandom


@given(st.lists(st.integers(0, 50), max_size=30))
def test_actions_run_by_time_then_by_the_order_of_scheduling(times: list[int]) -> None:
    clock = Clock(0)
    ran: list[tuple[int, int]] = []
    for index, when in enumerate(times):
        clock.at(when, "x", lambda when=when, index=index: ran.append((clock.now, index)))  # type: ignore[misc]
    clock.advance(100)
    assert ran == sorted((when, index) for index, when in enumerate(times))
    assert clock.now == 100
    assert clock.next_due() is None


def test_what_an_action_schedules_for_this_instant_runs_in_it_behind_the_rest() -> None:
    clock = Clock(10)
    ran: list[str] = []

    def first() -> None:
        ran.append("first")
        clock.after(0, "x", lambda: ran.append("third"))

    clock.at(20, "x", first)
    clock.at(20, "x", lambda: ran.append("second"))
    clock.advance(20)
    assert ran == ["first", "second", "third"]


def test_the_past_is_now() -> None:
    clock = Clock(100)
    clock.at(5, "x", lambda: None)
    assert clock.next_due() == 100


def test_an_instant_without_end_is_an_error_that_names_what_keeps_going(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MAX_ACTIONS_PER_INSTANT", 50)
    clock = Clock(0)

    def again() -> None:
        clock.after(0, "a controller that reacts to itself", again)

    again()
    with pytest.raises(EndlessLoopError, match=r"KERF801.*a controller that reacts to itself \(51 times\)"):
        clock.advance(1)


def test_pace_sleeps_in_proportion_to_virtual_time() -> None:
    slept: list[float] = []
    clock = Clock(0, pace=0.5, sleep=slept.append)
    clock.at(3_000, "x", lambda: None)
    clock.advance(10_000)
    assert slept == [1.5, 3.5]


def test_dice_depend_on_seed_and_name_only() -> None:
    assert SeededRandom(1).fraction("a", 1) == SeededRandom(1).fraction("a", 1)
    assert SeededRandom(1).fraction("a", 1) != SeededRandom(2).fraction("a", 1)
    assert SeededRandom(1).fraction("a", 1) != SeededRandom(1).fraction("a", 2)
    assert SeededRandom(-3).suffix(5, "x") == SeededRandom(-3).suffix(5, "x")


def test_dice_stay_in_range_and_are_spread() -> None:
    rng = SeededRandom(7)
    draws = [rng.between(1, 6, "d", n) for n in range(600)]
    assert set(draws) == {1, 2, 3, 4, 5, 6}
    assert all(60 < draws.count(side) < 140 for side in range(1, 7))
    assert set(rng.suffix(200, "s")[:40]) <= set(SAFE_LETTERS)
    assert not rng.happens(0.0, "never")
    assert rng.happens(1.0, "always")
    assert len(rng.uid("pod", "a")) == 36
