"""Schedules of disruption budgets: five cron fields or a macro, in UTC, with robfig/cron's meaning (D-46).

Pure: the caller says what time it is.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache

from msgspec import Struct

from kerf.engine.errors import InputError

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
HORIZON = 5
"""How many years are searched, after the year in which the search starts."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NUMBER = re.compile(r"\+?[0-9]{1,9}")
_LONGEST = 200  # characters
_MINUTE, _DAY = 60_000, 86_400_000


class _Field(Struct, frozen=True):
    name: str
    least: int
    most: int
    names: dict[str, int] = {}


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _Field("day of week", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)


class Cron(Struct, frozen=True):
    """A parsed schedule: the values of each field, ascending.

    `any_day` means that a day field is unrestricted, so that both must match. If both are restricted, one match is
    enough.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool

    def fires_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        matches = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return all(matches) if self.any_day else any(matches)


@lru_cache(maxsize=512)
def parse(text: str) -> Cron:
    """Parses a budget's schedule. Raises `InputError` KERF314, which says which field is wrong."""
    if len(text) > _LONGEST:
        raise _bad(text, "it is too long")
    parts = MACROS.get(text.strip(), text).split()
    if len(parts) != len(_FIELDS):
        raise _bad(text, f"it has {len(parts)} fields, not five")
    parsed = [_field(text, part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    values = [sorted(found) for found, _ in parsed]
    any_day = parsed[2][1] or parsed[4][1]
    return Cron(
        tuple(values[0]), tuple(values[1]), frozenset(values[2]), frozenset(values[3]), frozenset(values[4]), any_day
    )


def unreadable(text: str) -> InputError | None:
    """Returns what is wrong with a schedule; None if it can be read."""
    try:
        parse(text)
    except InputError as error:
        return error
    return None


def next_after(cron: Cron, at: int) -> int | None:
    """Returns the first firing strictly after `at` (both milliseconds since the epoch).

    Returns None if there is none before the end of the fifth year after.
    """
    earliest = (at // _MINUTE + 1) * _MINUTE
    first = datetime.fromtimestamp(earliest / 1000, UTC).date()
    minute_of_day = earliest % _DAY // _MINUTE
    last = date(first.year + HORIZON, 12, 31).toordinal()
    ordinal = first.toordinal()
    while ordinal <= last:
        day = date.fromordinal(ordinal)
        if day.month not in cron.months:
            ordinal = _next_month(day).toordinal()
            continue
        at_minute = _minute_from(cron, minute_of_day if day == first else 0) if cron.fires_on(day) else None
        if at_minute is not None:
            return (ordinal - date(1970, 1, 1).toordinal()) * _DAY + at_minute * _MINUTE
        ordinal += 1
    return None


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _minute_from(cron: Cron, earliest: int) -> int | None:
    """Returns the first firing of a day at or after this minute of the day."""
    for hour in cron.hours:
        if hour * 60 + cron.minutes[-1] < earliest:
            continue
        for minute in cron.minutes:
            if hour * 60 + minute >= earliest:
                return hour * 60 + minute
    return None


def _field(text: str, part: str, field: _Field) -> tuple[set[int], bool]:
    """Returns the values of one field, and whether it is unrestricted."""
    values: set[int] = set()
    star = False
    for item in part.split(","):
        if not item:
            continue  # robfig drops the empty items of a list
        found, unrestricted = _item(text, item, field)
        values |= found
        star |= unrestricted
    if not values:
        raise _bad(text, f"the {field.name} has no value")
    return values, star


def _item(text: str, item: str, field: _Field) -> tuple[set[int], bool]:
    span, slash, step_text = item.partition("/")
    low_text, dash, high_text = span.partition("-")
    star = low_text in ("*", "?")
    low = field.least if star else _number(text, low_text, field)  # robfig does not look at what follows "*-"
    high = field.most if star else _number(text, high_text, field) if dash else low
    step = 1
    if slash:
        step = _step(text, step_text)
        if not dash and not star:
            high = field.most  # "3/5" means from 3 on
    if low < field.least or high > field.most:
        raise _bad(text, f"{item!r} is no {field.name}: these go from {field.least} to {field.most}")
    if low > high:
        raise _bad(text, f"{item!r} as {field.name} begins after its end")
    return set(range(low, high + 1, step)), star and step == 1


def _number(text: str, part: str, field: _Field) -> int:
    named = field.names.get(part.lower())
    if named is not None:
        return named
    if not _NUMBER.fullmatch(part):
        raise _bad(text, f"{part!r} is no {field.name}")
    return int(part)


def _step(text: str, part: str) -> int:
    if not _NUMBER.fullmatch(part) or int(part) == 0:
        raise _bad(text, f"{part!r} is no step")
    return int(part)


def _bad(text: str, why: str) -> InputError:
    hint = 'Write five fields such as "0 9 * * mon-fri", or @daily; Sunday is 0'
    return InputError(f"{text[:_LONGEST]!r} is no schedule: {why}", code="KERF314", hint=hint)
