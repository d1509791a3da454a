"""What the time is, by three clocks (ADR 9)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kerf.engine.record.observations import ClocksAgree, ClocksDiffer
from kerf.engine.runtime.timekeeper import TOLERANCE, Timekeeper

T = 1_700_000_000_000
MINUTE = 60_000
DAY = 24 * 60 * MINUTE


@dataclass
class Machine:
    """A machine's clocks and an API server's: `true` time passes for all, `wall` and `server` are off by so much."""

    true: int = T
    wall: int = 0
    server: int = 0
    slept: int = 0
    keeper: Timekeeper = field(init=False)

    def __post_init__(self) -> None:
        self.keeper = Timekeeper(*self.clocks())
        self.date()

    def clocks(self) -> tuple[int, int]:
        return self.true + self.wall, self.true - T - self.slept

    def date(self, *, took: int = 0) -> None:
        """The API server answers a request that was sent `took` ms ago."""
        wall, monotonic = self.clocks()
        self.keeper.dated((self.true + self.server) // 1000 * 1000, monotonic - took, monotonic, wall)

    def passes(self, milliseconds: int, *, step: int = 1_500) -> None:
        """Time passes, with a request every `step`."""
        for _ in range(milliseconds // step):
            self.true += step
            self.date()

    @property
    def off(self) -> int:
        """By how much the kept time is wrong."""
        return self.keeper.now(self.clocks()[1]) - self.true


def begun(**clocks: int) -> Machine:
    machine = Machine(**clocks)
    machine.keeper.begin(*machine.clocks())
    return machine


def test_time_begins_with_the_wall_clock() -> None:
    machine = begun(wall=1_200)
    assert (machine.off, machine.keeper.in_doubt) == (1_200, False)


@pytest.mark.parametrize("step", [DAY, -DAY, 3_000, -3_000])
def test_a_step_of_the_wall_clock_moves_no_time_and_is_doubted(step: int) -> None:
    machine = begun()
    machine.wall = step
    machine.passes(10 * MINUTE)
    assert (machine.off, machine.keeper.in_doubt) == (0, True)
    assert machine.keeper.news(doubted=0) == [ClocksDiffer(step, machine.keeper.skew or 0)]
    assert machine.keeper.news(doubted=T) == []
    machine.wall = 0
    machine.passes(4_500)
    assert (machine.off, machine.keeper.in_doubt) == (0, False)
    assert machine.keeper.news(doubted=T)[-1] == ClocksAgree()


def test_two_dates_are_asked_for_and_one_is_not_enough() -> None:
    machine = begun()
    machine.wall = DAY
    machine.passes(3_000)
    machine.wall = 0
    machine.passes(1_500)
    assert machine.keeper.in_doubt
    machine.passes(1_500)
    assert not machine.keeper.in_doubt


def test_dates_of_one_moment_count_once() -> None:
    machine = begun()
    machine.wall = DAY
    machine.passes(3_000)
    machine.wall = 0
    for _ in range(5):
        machine.date()
    assert machine.keeper.in_doubt


def test_a_slow_answer_says_nothing() -> None:
    machine = begun()
    machine.server = -10_000
    for _ in range(5):
        machine.true += 5_000
        machine.date(took=5_000)
    assert not machine.keeper.in_doubt


def test_a_machine_that_slept_is_right_as_soon_as_two_dates_say_so() -> None:
    machine = begun()
    machine.true += 6 * 60 * MINUTE
    machine.slept = 6 * 60 * MINUTE
    machine.date()
    assert (machine.off, machine.keeper.in_doubt) == (-6 * 60 * MINUTE, True)
    machine.passes(3_000)
    assert (machine.off, machine.keeper.in_doubt) == (0, False)
    assert machine.keeper.news(doubted=0) == [
        ClocksDiffer(6 * 60 * MINUTE, 0),
        ClocksAgree(6 * 60 * MINUTE),
    ]


def slept(minutes: int) -> Machine:
    """A machine that slept, and has told the record that its clocks differ."""
    machine = begun()
    machine.true += minutes * MINUTE
    machine.slept = minutes * MINUTE
    machine.date()
    assert machine.keeper.news(doubted=0) == [ClocksDiffer(minutes * MINUTE, 0)]
    return machine


def test_l189_what_was_noted_between_waking_up_and_agreement_is_said_to_be_early() -> None:
    machine = slept(8)
    machine.passes(3_000)
    assert machine.keeper.news(doubted=T) == [ClocksAgree(8 * MINUTE, T)]


def test_a_doubt_that_follows_at_once_does_not_hide_that_time_was_set() -> None:
    machine = slept(8)
    machine.passes(3_000)
    machine.wall = DAY
    machine.date()
    assert machine.keeper.news(doubted=T) == [ClocksAgree(8 * MINUTE, T), ClocksDiffer(DAY, machine.keeper.skew or 0)]
    machine.wall = 0
    machine.passes(4_500)
    assert machine.keeper.news(doubted=T + 8 * MINUTE)[-1] == ClocksAgree()


def test_a_drift_is_doubted_when_it_comes_to_as_much_as_a_step() -> None:
    machine = begun()
    for _ in range(100):
        machine.wall += 100
        machine.passes(1_500)
    assert machine.keeper.in_doubt
    assert abs(machine.off) <= 2 * TOLERANCE
    machine.wall = 0
    machine.passes(4_500)
    assert (machine.off, machine.keeper.in_doubt) == (0, False)


def test_an_api_server_that_tells_another_time_is_doubted_the_second_time() -> None:
    machine = begun()
    machine.server = DAY
    machine.passes(1_500)
    assert not machine.keeper.in_doubt
    machine.passes(1_500)
    assert (machine.off, machine.keeper.in_doubt) == (0, True)


@pytest.mark.parametrize("wall", [DAY, -DAY])
def test_a_process_that_begins_in_doubt_takes_the_api_servers_time_or_the_records(wall: int) -> None:
    machine = Machine(wall=wall)
    differ = machine.keeper.begin(*machine.clocks())
    assert differ is not None
    assert abs(differ.skew - wall) <= 1_000
    assert abs(machine.off) <= 500
    machine.keeper.go_on_from(T - 77_000, machine.clocks()[1])
    assert machine.off == -77_000
    machine.keeper.news(doubted=T - 77_000)
    machine.wall = 0
    machine.passes(4_500)
    assert (machine.off, machine.keeper.in_doubt) == (0, False)
    assert machine.keeper.news(doubted=T - 77_000)[-1] == ClocksAgree(77_000, T - 77_000)


def test_an_api_server_that_tells_no_time_is_no_cause_for_doubt() -> None:
    keeper = Timekeeper(T, 5)
    assert keeper.begin(T + 1_000, 1_005) is None
    keeper.looked(T + 2_000, 2_005)
    assert (keeper.now(2_005), keeper.in_doubt, keeper.skew) == (T + 2_000, False, None)
    keeper.looked(T + DAY, 3_005)
    assert (keeper.now(3_005), keeper.in_doubt) == (T + 3_000, True)


def test_a_record_in_doubt_is_told_by_a_process_that_is_not() -> None:
    assert begun().keeper.news(doubted=T) == [ClocksAgree()]
