"""The next firing of a schedule is the first one: held to a walk over all minutes (D-45, D-46)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.engine.model.cron import Cron, next_after, parse
from tests.support.strategies.examples import examples

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fires(cron: Cron, moment: datetime) -> bool:
    days = moment.day in cron.days, (moment.weekday() + 1) % 7 in cron.weekdays
    day = (days[0] and days[1]) if cron.any_day else (days[0] or days[1])
    return moment.minute in cron.minutes and moment.hour in cron.hours and moment.month in cron.months and day


@settings(max_examples=examples(60), deadline=None)
@given(
    minute=st.sampled_from(["*", "0", "*/7", "5-9", "58,59"]),
    hour=st.sampled_from(["*", "0", "23", "*/5", "8-9"]),
    day=st.sampled_from(["*", "?", "1", "28-31", "*/2"]),
    weekday=st.sampled_from(["*", "0", "sat", "mon-fri"]),
    at=st.integers(1_700_000_000_000, 1_900_000_000_000),
)
def test_d45_nothing_fires_before_the_next_firing(minute: str, hour: str, day: str, weekday: str, at: int) -> None:
    cron = parse(f"{minute} {hour} {day} * {weekday}")
    found = next_after(cron, at)
    assert found is not None
    assert found > at
    moment = EPOCH + timedelta(milliseconds=found)
    assert moment.second == moment.microsecond == 0
    assert fires(cron, moment)
    walk = moment - timedelta(minutes=1)
    for _ in range(3_000):
        if (walk - EPOCH) // timedelta(milliseconds=1) <= at:
            break
        assert not fires(cron, walk)
        walk -= timedelta(minutes=1)
