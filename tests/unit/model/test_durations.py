"""Durations and times: Go's grammar, the API's stricter one (L-15, L-16, L-47), RFC 3339."""

import pytest

from kerf.engine.errors import InputError
from kerf.engine.model.durations import (
    format_duration,
    format_time,
    parse_duration,
    parse_duration_with_days,
    parse_go_duration,
    parse_nillable_duration,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30m", 1_800_000),
        ("1h30m", 5_400_000),
        ("168h", 604_800_000),
        ("0s", 0),
        ("60s", 60_000),
        ("1m1m", 120_000),
    ],
)
def test_api_durations(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds
    assert parse_go_duration(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1.5s", 1500),
        ("250ms", 250),
        ("-1m", -60_000),
        ("+1m", 60_000),
        ("0", 0),
        (".5h", 1_800_000),
        ("1ns", 1),
        ("1us", 1),
        ("1µs", 1),
        ("1500us", 2),
        ("-1ns", -1),
    ],
)
def test_go_durations_that_the_api_fields_do_not_take(text: str, milliseconds: int) -> None:
    """D-12: annotations take any Go duration; a positive one stays positive."""
    assert parse_go_duration(text) == milliseconds
    with pytest.raises(InputError, match="KERF307"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "hours"), [("2d", 48), ("1d12h", 36), ("-1d", -24), ("1d30m", 24.5), ("90m", 1.5), ("0d", 0)]
)
def test_durations_of_kerfs_own_input_may_begin_with_days(text: str, hours: float) -> None:
    assert parse_duration_with_days(text) == hours * 3_600_000


@pytest.mark.parametrize("text", ["", "d", "1.5d", "1d-3h", "1h2d", "1dd", "9" * 99 + "d", "9" * 200 + "d"])
def test_what_is_no_duration_with_days_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="KERF307"):
        parse_duration_with_days(text)


@pytest.mark.parametrize(
    "text",
    ["", "1", "1d", "h", "true", "1h 30m", "Never", "never", ".s", "1h-30m", "99999999h", "1" * 99 + "h1"],
)
def test_what_is_no_go_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="KERF307"):
        parse_go_duration(text)


def test_never_is_none() -> None:
    """`Never` is read as None (L-47)."""
    assert parse_nillable_duration("Never") is None
    assert parse_nillable_duration("720h") == 2_592_000_000
    assert format_duration(None) == "Never"
    with pytest.raises(InputError, match="Never"):
        parse_nillable_duration("never")


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (250, "250ms"),
        (1500, "1.5s"),
        (60_000, "1m0s"),
        (3_600_000, "1h0m0s"),
        (2_592_000_000, "720h0m0s"),
        (-90_000, "-1m30s"),
        (5_400_001, "1h30m0.001s"),
    ],
)
def test_durations_are_written_as_go_writes_them(milliseconds: int, text: str) -> None:
    """L-47: terminationGracePeriod comes back as Go's text."""
    assert format_duration(milliseconds) == text


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-15T11:00:35Z", 1_768_474_835_000),
        ("2026-01-15T12:00:35+01:00", 1_768_474_835_000),
        ("2026-01-15T05:30:35-05:30", 1_768_474_835_000),
        ("2026-01-15T11:00:35.123456Z", 1_768_474_835_123),
        ("1969-12-31T23:59:59.5Z", -500),
    ],
)
def test_times(text: str, milliseconds: int) -> None:
    assert parse_time(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-15",
        "2026-01-15T11:00:35",
        "2026-01-15 11:00:35Z",
        "2026-02-30T00:00:00Z",
        "2026-01-15T24:00:00Z",
        "2026-01-15T11:00:35+25:00",
        "2026-01-15T11:00:35+00:60",
        "0000-01-01T00:00:00Z",
        "1768474835",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="KERF308"):
        parse_time(text)


def test_times_are_written_as_kubernetes_writes_them() -> None:
    assert format_time(1_768_474_835_000) == "2026-01-15T11:00:35Z"
    assert format_time(1_768_474_835_123) == "2026-01-15T11:00:35.123Z"
