"""Find the moment of a record that a text names: a position, a time as people write it, or a distance from start or
end."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import RecordCorrupt
from kerf.engine.record.store import Store
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.projections.prose.amounts import duration, moment
from kerf.replay.errors import PositionUnknown
from kerf.replay.time_travel.moment_forms import MOMENT_FORMS

_DAY = 86_400_000
MOST_AFTER_END = _DAY
"""A time may be so long after the last entry (ms): a quiet cluster writes nothing. What is later is a slip."""
LONGEST_NUMBER = 18
"""Digits of a position. Python refuses to read numbers of thousands of digits."""
_LONGEST_DAYS = 6
_DISTANCE = re.compile(r"(?P<sign>[+-])(?:(?P<days>[0-9]+)d)?(?P<rest>[0-9.a-zµμ]*?)(?: from end)?")
_OF_DAY = re.compile(r"(?P<hour>[0-9]{1,2}):(?P<rest>[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?)Z?", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


Around = Callable[[int], tuple[int, int]]
"""Tells for a time (ms since the epoch) between which positions the last entry at or before it is, both included."""


class Moment(Struct, frozen=True):
    """A moment of a record: the `position` of its latest entry, and the time `at` (ms since the epoch).

    Where a time was asked for, `at` is that time, which may be later than the entry's. `note` says what the reader of
    the answer has to know of how the text was understood, "" for nothing.
    """

    position: int
    at: int
    note: str = ""


def moment_of(store: Store, text: str, around: Around | None = None) -> Moment:
    """Return the moment that a text names; `MOMENT_FORMS` has the forms. A time that no zone is given with is UTC.
    `around` tells what is known already of where a time is: to look at an entry takes several statements.

    Raises PositionUnknown (KERF202) for what cannot be read, and for what lies outside of the record. A time up to a
    day after the last entry is answered, with a note: nothing had happened by then.
    """
    wanted, last = text.strip(), store.last_position()
    if not last:
        raise PositionUnknown("the record is empty", where=text)
    if wanted == "end":
        return Moment(last, _time_at(store, last))
    if wanted == "start":
        first = _first(store)
        return Moment(first.position, first.at)
    if is_position(wanted):
        position = _checked_position(store, wanted, last)
        return Moment(position, _time_at(store, position))
    at, note = _read_time(store, wanted)
    end = _time_at(store, last)
    if at > end + MOST_AFTER_END:
        hint = f"{_range_of(store)}. A time up to {duration(MOST_AFTER_END)} after its end is answered, too"
        raise PositionUnknown(f"{text!r} is {duration(at - end)} after the record's end", hint=hint)
    if at > end:
        late = f"{moment(at)} is {duration(at - end)} after the record's last entry (position {last})"
        note = f"{late}: it is answered as if nothing had happened since"
    found = _position_at(store, at, around)
    if found is None:
        raise PositionUnknown(f"{text!r} is before the record begins", hint=_range_of(store))
    return Moment(found, at, note)


def locate(store: Store, text: str) -> int:
    """Return the position that a text names: of a time, the last entry at or before it. Raises as `moment_of` does."""
    return moment_of(store, text).position


def time_of(store: Store, text: str) -> tuple[int, str]:
    """Return the time (ms since the epoch) that a text names, also one outside of the record, and a note (see
    `Moment`). Raises PositionUnknown (KERF202)."""
    wanted = text.strip()
    if wanted in ("start", "end") or is_position(wanted):
        return moment_of(store, wanted).at, ""
    if not store.last_position():
        raise PositionUnknown("the record is empty", where=text)
    return _read_time(store, wanted)


def last_before(store: Store, time: int) -> int:
    """Return the last position before a time (ms since the epoch); the one before the record begins if there is
    none."""
    found = _position_at(store, time - 1)
    return _first(store).position - 1 if found is None else found


def is_position(text: str) -> bool:
    """Return whether a text is a position, and no time."""
    return text.isascii() and text.isdigit()


def end_of(store: Store) -> Moment:
    """Return the moment of the last entry."""
    return moment_of(store, "end")


def state_at(store: Store, position: int | None = None, now: int = 0) -> State:
    """Return the state at a position (the end by default) as it is at the time `now`, if that is later than its entry.

    Ages and waiting times, and what deciders say that look at this state, are then those of that time. Raises
    StoreError, and RecordShortened (KERF118) for a position before the record's base.
    """
    state = load(store, position)
    state.facts.at = max(state.facts.at, now)
    return state


def _read_time(store: Store, text: str) -> tuple[int, str]:
    """Return the time that a text names, and a note if it might have been another."""
    try:
        distance, of_day = _DISTANCE.fullmatch(text), _OF_DAY.fullmatch(text)
        if distance is not None:
            from_end = distance["sign"] == "-"
            origin = _time_at(store, store.last_position()) if from_end else _first(store).at
            length = _length(distance["days"] or "", distance["rest"])
            return origin + (-length if from_end else length), ""
        if of_day is not None:
            return _time_of_day(store, f"{of_day['hour']:0>2}:{of_day['rest']}")
        return _milliseconds(datetime.fromisoformat(text.upper())), ""
    except InputError as error:
        raise PositionUnknown(f"{text!r}: {error.message}", hint=f"{error.hint}. {_hint(store)}") from error
    except (ValueError, OverflowError) as error:
        hint = _signed(text, store) or _hint(store)
        raise PositionUnknown(f"{text[:100]!r} is neither a position nor a time", hint=hint) from error


def _signed(text: str, store: Store) -> str:
    """Ask which distance is meant by one without a sign, as `kerf simulate --until 2h` takes it; "" if it is none."""
    distance = _DISTANCE.fullmatch(f"+{text}")
    with suppress(ValueError, InputError):
        if distance is not None and " " not in text and _length(distance["days"] or "", distance["rest"]):
            return f"Is it +{text}, after the start, or -{text}, before the end? {_range_of(store)}"
    return ""


def _length(days: str, rest: str) -> int:
    """Return a distance in ms: whole days, and a Go duration. Raises InputError (KERF307), and ValueError for
    nothing."""
    if not days and not rest:
        raise ValueError("no distance")
    if len(days) > _LONGEST_DAYS:
        raise InputError("the record is not that long", hint="The longest distance is 999999d")
    return int(days or 0) * _DAY + (parse_go_duration(rest) if rest else 0)


def _time_of_day(store: Store, text: str) -> tuple[int, str]:
    """Return the last such time of the record; if it has none, that of the day of the last entry. With a note, if the
    record has several."""
    begin, end = _first(store).at, _time_at(store, store.last_position())
    last_day = datetime.fromtimestamp(end // 1000, UTC).date()
    time = _milliseconds(datetime.fromisoformat(f"{last_day.isoformat()} {text}"))
    if time > end and time - _DAY >= begin:
        time -= _DAY
    several = begin <= time - _DAY
    note = f"{text} is taken as {moment(time)}, the last of that time in the record; name the day for another one"
    return time, note if several else ""


def _milliseconds(moment_read: datetime) -> int:
    aware = moment_read if moment_read.tzinfo is not None else moment_read.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND


def _checked_position(store: Store, digits: str, last: int) -> int:
    first, base = _first(store).position, store.base()
    if base is not None:
        first = min(first, base.position)  # the state there is known
    position = int(digits[-LONGEST_NUMBER:])
    if len(digits.lstrip("0")) > LONGEST_NUMBER or not first <= position <= last:
        shown = digits if len(digits) <= LONGEST_NUMBER else f"of {len(digits)} digits"
        raise PositionUnknown(
            f"position {shown} is not in the record", where=f"positions {first} to {last}", hint=_hint(store)
        )
    return position


def _position_at(store: Store, time: int, around: Around | None = None) -> int | None:
    """Return the last position at or before a time, None before the record begins. By bisection: times never decrease
    from one position to the next. What a cut record still has from before its base is searched one by one."""
    base = store.base()
    if base is not None and time < base.at:
        kept = [entry.position for entry in store.scan(0, base.position) if entry.at <= time]
        return kept[-1] if kept else None
    first = base.position + 1 if base is not None else _first(store).position
    last = store.last_position()
    begin, end = around(time) if around is not None else (first, last)
    found = _last_until(store, time, max(first, begin), min(last, end))
    if found >= first:
        return found
    return None if base is None else base.position


def _last_until(store: Store, time: int, begin: int, end: int) -> int:
    """Return the last of the positions from `begin` to `end` at or before a time; `begin - 1` if there is none.

    Raises RecordCorrupt only where damage may be the answer: entries before it are readable, whatever comes later.
    """
    try:
        positions = range(begin, end + 1)
        return begin - 1 + bisect_right(positions, time, key=lambda position: _time_at(store, position))
    except RecordCorrupt as error:
        if not begin < error.position <= end:
            raise
        found = _last_until(store, time, begin, error.position - 1)
        if found == error.position - 1:
            raise
        return found


def _range_of(store: Store) -> str:
    first, last = _first(store), store.last_position()
    return (
        f"The record runs from {moment(first.at)} (position {first.position}) to {moment(_time_at(store, last))} "
        f"(position {last})"
    )


def _hint(store: Store) -> str:
    return f"Write {MOMENT_FORMS}. {_range_of(store)}"


def _first(store: Store) -> Entry:
    return next(store.scan(0, 1), None) or next(store.scan(0, None))  # one that was cut begins later


def _time_at(store: Store, position: int) -> int:
    """Return the time of the entry at a position. Of what a cut has removed it is that of the base."""
    entry = next(store.scan(position - 1, position), None)
    base = store.base()
    if entry is None and base is not None:
        return base.at
    assert entry is not None, position
    return entry.at
