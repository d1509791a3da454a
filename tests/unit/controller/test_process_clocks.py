"""The clocks of a process, and Date headers as they come (ADR 9)."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from kerf.adapters.controller.process_clocks import ProcessClocks
from kerf.adapters.manager.clock_watch import clock_families, clock_notes
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.record.observations import ClocksAgree, ClocksDiffer

T = 1_700_000_000_000
DAY = 86_400_000


class Machine:
    def __init__(self) -> None:
        self.passed, self.wrong = 0, 0
        self.clocks = ProcessClocks(lambda: T + self.passed + self.wrong, lambda: self.passed)

    def hears(self, *, after: int = 2_000) -> None:
        self.passed += after
        self.clocks.dated(formatdate((T + self.passed) // 1000, usegmt=True), 0.01)


@pytest.fixture
def machine() -> Machine:
    made = Machine()
    made.hears()
    assert made.clocks.begin() is None
    return made


def test_a_step_moves_no_time_and_is_told_until_two_dates_agree(machine: Machine) -> None:
    machine.wrong = DAY
    machine.hears()
    assert machine.clocks.now() == T + machine.passed
    (differ,) = machine.clocks.news(doubted=0)
    assert isinstance(differ, ClocksDiffer)
    assert differ.jump == DAY
    assert DAY - 2_000 <= differ.skew <= DAY
    assert any("from the API server's" in note for note in clock_notes(machine.clocks))
    assert b"kerf_clocks_differ 1.0" in exposition(clock_families(machine.clocks))
    machine.wrong = 0
    machine.hears()
    machine.hears()
    assert machine.clocks.news(doubted=T)[-1] == ClocksAgree()
    assert clock_notes(machine.clocks) == []


@pytest.mark.parametrize("header", ["", "yesterday", "Thu, 99 Foo 2026 00:00:00 GMT"])
def test_a_header_that_is_no_date_says_nothing(machine: Machine, header: str) -> None:
    heard = machine.clocks.heard
    machine.clocks.dated(header, 0.0)
    assert machine.clocks.heard == heard


def test_a_process_that_begins_a_day_ahead_takes_the_api_servers_time() -> None:
    machine = Machine()
    machine.wrong = DAY
    machine.clocks = ProcessClocks(lambda: T + machine.passed + machine.wrong, lambda: machine.passed)
    machine.hears()
    differ = machine.clocks.begin()
    assert differ is not None
    assert (differ.jump, DAY - 2_000 <= differ.skew <= DAY) == (0, True)
    assert abs(machine.clocks.now() - T - machine.passed) <= 500
    machine.clocks.go_on_from(T - 5_000)
    assert machine.clocks.now() == T - 5_000
