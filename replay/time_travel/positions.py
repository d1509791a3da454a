"""Find the position in a record that a text names: a number, a time, or a distance from start or end."""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime

from msgspec import Struct

from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.replay.errors import PositionUnknown

_HINT = (
    'Give a position ("1234"), a time ("2026-05-01T10:00:00Z"), "+2h" from the start, "-5m" before the end, or "end"'
)


_LONGEST = 18
"""Digits of a position. Python refuses to read numbers of thousands of digits."""
_BEFORE_END = re.compile(r"-(?P<duration>[0-9a-zµ.]+)( from end)?")


def locate(store: Store, text: str) -> int:
    """Return the position that a text names. Of a time, that is the last entry at or before it.

    Takes "1234", an RFC 3339 time, "+2h" after the first entry, "-5m" (or "-5m from end") before the last one, "start",
    and "end". Raises PositionUnknown (KERF202).
    """
    last = store.last_position()
    moment = text.strip()
    if not last:
        raise PositionUnknown("the record is empty", where=text)
    if moment == "end":
        return last
    if moment == "start":
        return _first(store).position
    if moment.isascii() and moment.isdigit():
        return _checked_position(store, moment, last)
    return _position_at(store, time_of(store, moment), text)


def time_of(store: Store, text: str) -> int:
    """Return the time (ms since the epoch) that a text names; see `locate`. Raises PositionUnknown (KERF202)."""
    text_of_time = text.strip()
    try:
        if text_of_time.startswith("+"):
            return _first(store).at + parse_go_duration(text_of_time[1:])
        before_end = _BEFORE_END.fullmatch(text_of_time)
        if before_end:
            return _entry(store, store.last_position()).at - parse_go_duration(before_end["duration"])
        moment = datetime.fromisoformat(text_of_time)
    except InputError as error:
        raise PositionUnknown(f"{text!r}: {error.message}", hint=f"{error.hint}. {_HINT}") from error
    except (ValueError, OverflowError) as error:
        raise PositionUnknown(f"{text!r} is neither a position nor a time", hint=_HINT) from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


class TimeAfterEnd(Struct, frozen=True):
    """The time that was `asked` for is later than the last entry, which has the time `last`. Both in ms since the
    epoch."""

    asked: int
    last: int
    position: int


def time_after_end(store: Store, text: str) -> TimeAfterEnd | None:
    """Tell that a text names a time after the last entry; None if it does not.

    The answer is then as of the last entry. What waits for a time, such as the end of a budget's window, may be
    otherwise by then.
    """
    wanted, position = text.strip(), store.last_position()
    if not position or wanted in ("end", "start") or (wanted.isascii() and wanted.isdigit()):
        return None
    asked, last = time_of(store, wanted), _entry(store, position).at
    return TimeAfterEnd(asked, last, position) if asked > last else None


def _checked_position(store: Store, digits: str, last: int) -> int:
    first = _first(store).position
    position = int(digits[-_LONGEST:])
    if len(digits.lstrip("0")) > _LONGEST or not first <= position <= last:
        shown = digits if len(digits) <= _LONGEST else f"of {len(digits)} digits"
        raise PositionUnknown(
            f"position {shown} is not in the record", where=f"positions {first} to {last}", hint=_HINT
        )
    return position


def _position_at(store: Store, time: int, text: str) -> int:
    """Return the last position at or before a time, by bisection: times never decrease from one position to the next.
    What a cut record still has from before its base is searched one by one."""
    base = store.base()
    if base is not None and time < base.at:
        kept = [entry.position for entry in store.scan(0, base.position) if entry.at <= time]
        if not kept:
            raise PositionUnknown(f"the record begins after {text}", where=f"position {base.position}", hint=_HINT)
        return kept[-1]
    first = base.position + 1 if base is not None else _first(store).position
    last = store.last_position()
    count = bisect_right(range(first, last + 1), time, key=lambda position: _entry(store, position).at)
    if not count and base is not None:
        return base.position
    if not count:
        raise PositionUnknown(f"the record begins after {text}", where=f"position {first}", hint=_HINT)
    return first + count - 1


def _first(store: Store) -> Entry:
    return next(store.scan(0, None))


def _entry(store: Store, position: int) -> Entry:
    return next(store.scan(position - 1, position))
