"""Read when an assertion must hold: between two moments of a record, or at some hours of each day."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from kerf.engine.record.store import Store
from kerf.projections.prose.amounts import moment
from kerf.replay.errors import PolicyRefused, PositionUnknown
from kerf.replay.policies.evidence import Window
from kerf.replay.time_travel.moments import end_of, moment_of
from kerf.replay.user_documents import list_of, mapping_of, nearest

DAILY, DAYS = "daily", "days"
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY, _MINUTE = 86_400_000, 60_000
_EPOCH_WEEKDAY = WEEK.index("Thu")
_OF_DAY = re.compile(r"(?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])", re.ASCII)


class Moments(Struct, frozen=True):
    """From one moment of a record to another, as people write them."""

    since: str = "start"
    until: str = "end"


class Recurring(Struct, frozen=True):
    """From one time of the day to another (ms after midnight, UTC), on the days of the week on which it begins. A
    window that ends before it begins goes on into the next day."""

    begin: int
    end: int
    days: tuple[str, ...] = WEEK


Between = Moments | Recurring


def read_between(value: object, where: str) -> Between:
    """Read two moments, or {daily: [FROM, TO], days: [Mon, …]}. A number is refused: YAML makes 600 of an unquoted
    10:00. Raises PolicyRefused (KERF221)."""
    if not isinstance(value, dict):
        return Moments(*_two_texts(value, where))
    parts = mapping_of(value, (DAILY, DAYS), where, PolicyRefused)
    begin, end = (_of_day(text, f"{where}.{DAILY}") for text in _two_texts(parts.get(DAILY), f"{where}.{DAILY}"))
    if begin == end:
        hint = 'Leave between out for all times, or write two times of a day, such as ["09:00", "17:00"]'
        raise PolicyRefused("it ends when it begins", where=f"{where}.{DAILY}", hint=hint)
    days = [str(day) for day in list_of(parts.get(DAYS, list(WEEK)), f"{where}.{DAYS}", PolicyRefused)]
    for day in days:
        if day not in WEEK:
            raise PolicyRefused(f"{day!r} is no day of the week", where=f"{where}.{DAYS}", hint=nearest(day, WEEK))
    return Recurring(begin, end, tuple(days))


def windows_of(store: Store, between: Between, where: str) -> Sequence[Window]:
    """Return the parts of a record in which an assertion must hold, in order. Raises PolicyRefused (KERF221) for a time
    that the record does not have."""
    first, last = moment_of(store, "start").at, end_of(store).at
    if isinstance(between, Recurring):
        return [Window(max(first, begin), min(last, end)) for begin, end in _each_day(between, first, last)]
    try:
        since, until = (moment_of(store, text) for text in (between.since, between.until))
    except PositionUnknown as error:
        raise PolicyRefused(error.message, where=where, hint=error.hint) from error
    if since.at > last:  # nothing is known of it, so that anything would hold
        hint = f"The record runs to {moment(last)}"
        raise PolicyRefused("it begins after the record's end", where=where, hint=hint)
    if until.at < since.at:
        hint = f"Write the earlier time first. The record runs to {moment(last)}"
        raise PolicyRefused("it ends before it begins", where=where, hint=hint)
    return [Window(since.at, until.at)]


def _each_day(between: Recurring, first: int, last: int) -> list[tuple[int, int]]:
    """Return begin and end of the windows that lie in a part of time, if only partly."""
    lasts = (between.end - between.begin) % _DAY or _DAY
    days = range(first // _DAY - 1, last // _DAY + 1)
    begins = [day * _DAY + between.begin for day in days if WEEK[(day + _EPOCH_WEEKDAY) % 7] in between.days]
    return [(begin, begin + lasts) for begin in begins if begin <= last and begin + lasts >= first]


def _two_texts(value: object, where: str) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(text, str) for text in value):
        hint = 'Write two times in quotes, such as ["09:00", "17:00"] or ["+1h", "end"]'
        raise PolicyRefused("a window is two times", where=where, hint=hint)
    return value[0], value[1]


def _of_day(text: str, where: str) -> int:
    found = _OF_DAY.fullmatch(text)
    minutes = int(found["hour"]) * 60 + int(found["minute"]) if found is not None else _DAY
    if minutes > _DAY // _MINUTE:
        raise PolicyRefused(f"{text[:50]!r} is no time of day", where=where, hint='Write hours and minutes: "09:00"')
    return minutes * _MINUTE
