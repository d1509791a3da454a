"""Converts durations and times of Kubernetes objects to and from integer milliseconds.

There are two grammars of durations: Go's own (`1h30m`, `1.5s`, `250ms`; in annotations), and the stricter one of
Karpenter's API fields (whole hours, minutes and seconds: "DUR" and "DURN" of the specification).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from kerf.engine.errors import InputError

NEVER = "Never"

_NANOSECONDS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip
_LONGEST = 100  # characters
_LARGEST = (1 << 63) - 1  # nanoseconds, the range of a Go duration
_PART = r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|µs|μs|ms|s|m|h)"
_PARTS = re.compile(_PART)
_GO = re.compile(rf"[+-]?(?:0|(?:{_PART})+)")
API_DURATION = "([0-9]+[smh])+"
"""DUR: whole hours, minutes and seconds."""
_API = re.compile(API_DURATION)
_DAYS = re.compile(r"([+-]?)([0-9]+)d(.*)")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-5][0-9]))"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@lru_cache(maxsize=4_096)
def parse_go_duration(text: str) -> int:
    """Returns a Go duration in milliseconds, rounded away from zero, so that a positive one stays positive (D-12).

    Raises `InputError` KERF307.
    """
    if len(text) > _LONGEST or not _GO.fullmatch(text):
        raise _bad_duration(text, 'Write a Go duration such as "30m", "1h30m" or "1.5s"')
    nanoseconds = 0
    for whole, part, bare, unit in _PARTS.findall(text):
        digits = part or bare
        nanoseconds += int((whole or "0") + digits) * _NANOSECONDS[unit] // 10 ** len(digits)
    if nanoseconds > _LARGEST:
        raise _bad_duration(text, "The longest duration is about 292 years")
    milliseconds = -(-nanoseconds // 1_000_000)
    return -milliseconds if text.startswith("-") else milliseconds


def protected_for(text: str) -> int:
    """Returns how long a do-not-disrupt protects by its duration, in milliseconds (D-12): 0 where the text is none, or
    none above zero."""
    try:
        return max(0, parse_go_duration(text))
    except InputError:
        return 0


def parse_duration_with_days(text: str) -> int:
    """Returns a Go duration that may begin with days of 24 hours (`2d`, `1d12h`) in milliseconds, as kerf's own input
    does. Raises `InputError` KERF307.
    """
    days = _DAYS.fullmatch(text) if len(text) <= _LONGEST else None
    try:
        return parse_go_duration(f"{days[1]}{int(days[2]) * 24}h{days[3]}" if days else text)
    except InputError as error:
        raise _bad_duration(text, error.hint.replace('"1.5s"', '"2d"')) from None


def parse_duration(text: str) -> int:
    """Returns an API duration (whole hours, minutes and seconds) in milliseconds. Raises `InputError` KERF307."""
    if len(text) > _LONGEST or not _API.fullmatch(text):
        raise _bad_duration(text, 'Write whole hours, minutes and seconds, such as "30m" or "168h"')
    return parse_go_duration(text)


def parse_nillable_duration(text: str) -> int | None:
    """Returns an API duration in milliseconds, or None for `Never` (L-47). Raises `InputError` KERF307."""
    if text == NEVER:
        return None
    try:
        return parse_duration(text)
    except InputError as error:
        raise _bad_duration(text, f'{error.hint}, or "Never"') from None


def format_duration(milliseconds: int | None) -> str:
    """Formats a duration as Go does: `720h0m0s`, `1m30s`, `250ms`, `0s`; `Never` for None (L-47)."""
    if milliseconds is None:
        return NEVER
    sign, left = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    if 0 < left < 1_000:
        return f"{sign}{left}ms"
    minutes, rest = divmod(left, 60_000)
    seconds, thousandths = divmod(rest, 1_000)
    fraction = f".{thousandths:03}".rstrip("0") if thousandths else ""
    text = f"{seconds}{fraction}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = (f"{hours}h" if hours else "") + f"{minutes}m{text}"
    return sign + text


@lru_cache(maxsize=16_384)
def parse_time(text: str) -> int:
    """Returns an RFC 3339 time in milliseconds since the epoch, rounded down. Raises `InputError` KERF308."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise _bad_time(text)
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    try:
        zone = UTC
        if sign:
            offset = timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
            zone = timezone(-offset if sign == "-" else offset)
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=zone)
    except ValueError:
        raise _bad_time(text) from None
    return (moment - _EPOCH) // _MILLISECOND + int((fraction or "")[:3].ljust(3, "0"))


def format_time(milliseconds: int) -> str:
    """Formats a time as RFC 3339 in UTC: to the second, as Kubernetes does, or to the millisecond if it has some."""
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    precision = "milliseconds" if milliseconds % 1_000 else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _bad_duration(text: str, hint: str) -> InputError:
    return InputError(f"{text[:_LONGEST]!r} is not a duration", code="KERF307", hint=hint)


def _bad_time(text: str) -> InputError:
    return InputError(
        f"{text[:_LONGEST]!r} is not a time",
        code="KERF308",
        hint='Write an RFC 3339 time such as "2026-01-15T11:00:00Z"',
    )
