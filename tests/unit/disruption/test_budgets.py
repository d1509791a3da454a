"""Schedules and budgets (D-43…D-53, L-22; worked cases W-1…W-8)."""

from __future__ import annotations

import msgspec
import pytest

from kerf.engine.disruption.budgets import UNLIMITED, Ledger, Use, active, allowance, remaining
from kerf.engine.errors import InputError
from kerf.engine.model.cron import next_after, parse
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.durations import format_time, parse_time
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool

EMPTY, DRIFTED, UNDERUTILIZED = DisruptionReason.EMPTY, DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED

NOON = parse_time("2026-01-15T12:00:00Z")  # a Thursday
HOUR = 3_600_000


def pool(*budgets: Budget, name: str = "default") -> NodePool:
    return NodePool(name=name, node_class=NodeClassRef("g", "K", "default"), budgets=budgets)


def after(schedule: str, at: str = "2026-01-15T12:00:00Z") -> str | None:
    found = next_after(parse(schedule), parse_time(at))
    return None if found is None else format_time(found)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2026-01-15T12:01:00Z"),
        ("0 12 * * *", "2026-01-16T12:00:00Z"),
        ("30 11,13 * * *", "2026-01-15T13:30:00Z"),
        ("*/20 * * * *", "2026-01-15T12:20:00Z"),
        ("50/5 * * * *", "2026-01-15T12:50:00Z"),
        ("0 0 1 * *", "2026-02-01T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 * jul *", "2026-07-01T00:00:00Z"),
        ("0 0 * * MON-wed", "2026-01-19T00:00:00Z"),
        ("0 0 20 * sat", "2026-01-17T00:00:00Z"),
        ("0 0 */2 * sun", "2026-01-17T00:00:00Z"),
        ("0 0 */1 * sun", "2026-01-18T00:00:00Z"),
        ("0 0 ? * 0", "2026-01-18T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z"),
        ("@weekly", "2026-01-18T00:00:00Z"),
        ("@midnight", "2026-01-16T00:00:00Z"),
        ("@hourly", "2026-01-15T13:00:00Z"),
        ("0 0 30 2 *", None),
    ],
)
def test_d46_a_schedule_fires_next(schedule: str, expected: str | None) -> None:
    assert after(schedule) == expected


@pytest.mark.parametrize(
    "schedule",
    ["* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "* * * * tue-mon",
     "*/0 * * * *", "x * * * *", "-5 * * * *", "1-2-3 * * * *", "@every 1h", ", * * * *", ""],
)  # fmt: skip
def test_d46_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(InputError, match="KERF314"):
        parse(schedule)


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("60 * * * *", "'60' is no minute: these go from 0 to 59"),
        ("* 9-25 * * *", "'9-25' is no hour: these go from 0 to 23"),
        ("* * * * fri-mon", "'fri-mon' as day of week begins after its end"),
    ],
)
def test_d43_a_schedule_that_is_none_is_told_what_is_wrong_with_it(schedule: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(schedule)
    assert refused.value.message == f"{schedule!r} is no schedule: {said}"


def test_d45_a_firing_within_the_minute_counts_from_its_second() -> None:
    assert after("* * * * *", "2026-01-15T12:00:59.999Z") == "2026-01-15T12:01:00Z"
    assert after("* * * * *", "2026-01-15T12:01:00Z") == "2026-01-15T12:02:00Z"


def test_w6_a_window_is_open_at_its_firing_and_over_a_duration_later() -> None:
    assert not active(Budget("0", "0 11 * * *", HOUR), NOON)
    assert active(Budget("0", "0 11 * * *", HOUR), NOON - 1)
    assert active(Budget("0", "0 12 * * *", HOUR), NOON)
    assert not active(Budget("0", "0 12 * * *", HOUR), NOON - 1)
    assert allowance(pool(Budget("0", "0 11 * * *", HOUR)), EMPTY, 10, NOON).nodes == UNLIMITED


def test_d45_windows_longer_than_the_period_stay_open() -> None:
    assert all(active(Budget("0", "@hourly", 2 * HOUR), NOON + minute * 60_000) for minute in range(0, 180, 7))


def test_d46_a_schedule_that_never_fires_is_always_active() -> None:
    assert active(Budget("0", "0 0 30 2 *", HOUR), NOON)


def test_w1_w3_percentages_round_up() -> None:
    expected = {"30%": 3, "100%": 10, "0%": 0, "5%": 1}
    assert {text: allowance(pool(Budget(text)), EMPTY, 10, NOON).nodes for text in expected} == expected
    assert [allowance(pool(Budget(text)), EMPTY, 3, NOON).nodes for text in ("5%", "33%", "50%", "0")] == [1, 1, 2, 0]


def test_w4_the_least_budget_of_a_reason_counts() -> None:
    given = pool(
        Budget("10"),
        Budget("100"),
        Budget("100%"),
        Budget("15", reasons=(DRIFTED.karpenter, UNDERUTILIZED.karpenter)),
        Budget("5", reasons=(DRIFTED.karpenter,)),
        Budget("4", reasons=(EMPTY.karpenter,)),
    )
    found = {reason: allowance(given, reason, 100, NOON).nodes for reason in (EMPTY, DRIFTED, UNDERUTILIZED)}
    assert found == {EMPTY: 4, DRIFTED: 5, UNDERUTILIZED: 10}


@pytest.mark.parametrize(
    "bad",
    [Budget("5", "99 * * * *", HOUR, (DRIFTED,)), Budget("5", "@daily", None), Budget("5", None, HOUR),
     Budget("-1"), Budget("many"), Budget("10 %")],
)  # fmt: skip
def test_w5_l22_one_bad_budget_allows_nothing_for_any_reason(bad: Budget) -> None:
    for reason in (EMPTY, DRIFTED, UNDERUTILIZED):
        found = allowance(pool(Budget("100%"), bad), reason, 10, NOON)
        assert found.nodes == 0
        assert [(fault.code, fault.params["budget"]) for fault in found.faults] == [("bad-budget", 1)]


def test_w7_consumption_is_taken_off_and_never_below_nothing() -> None:
    given = pool(Budget("100%"))
    assert remaining(given, EMPTY, Use(10, 2), NOON) == 8
    assert remaining(given, EMPTY, Use(10, 10), NOON) == 0
    assert remaining(pool(Budget("1")), EMPTY, Use(10, 3), NOON) == 0
    assert remaining(pool(), EMPTY, Use(10, 3), NOON) == UNLIMITED - 3


def test_d50_a_node_that_goes_consumes_for_every_reason() -> None:
    ledger = Ledger([pool(Budget("3"), Budget("1", reasons=(EMPTY.karpenter,)))], {"default": Use(10, 0)}, NOON)
    tried = ledger.copy()
    tried.take("default")
    assert [tried.left("default", reason) for reason in (EMPTY, UNDERUTILIZED)] == [
        0,
        2,
    ]
    assert [ledger.left("default", reason) for reason in (EMPTY, UNDERUTILIZED)] == [
        1,
        3,
    ]
    assert ledger.left("unknown", EMPTY) == 0


def test_d43_an_explicit_empty_list_restricts_nothing() -> None:
    assert allowance(msgspec.structs.replace(pool(), budgets=()), DRIFTED, 10, NOON).nodes == UNLIMITED


def test_d50_what_does_not_go_soon_takes_its_part_of_each_round() -> None:
    """Nodes that go make room for others; those that are not ready, or that pods keep, may stay for long."""
    given = pool(Budget("2"))
    assert remaining(given, EMPTY, Use(10, 1), NOON, rounds=8) == 15
    assert remaining(given, EMPTY, Use(10, 1, lasting=1), NOON, rounds=8) == 8
    assert remaining(given, EMPTY, Use(10, 2, lasting=2), NOON, rounds=8) == 0
    assert remaining(given, EMPTY, Use(10, 1, lasting=1), NOON) == remaining(given, EMPTY, Use(10, 1), NOON) == 1
