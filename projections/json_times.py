"""JSON for programs and people: beside each time as a number stands the same as RFC 3339."""

from __future__ import annotations

from typing import Any

import msgspec

from kerf.projections.prose.amounts import moment

SUFFIX = "_time"
"""The text beside the number `at` is named `at_time`."""
TIMES = frozenset(
    [
        "at", "now", "since", "until", "due", "forced_at", "window_closes", "proposed", "started", "ready", "retry_at",
        "look_at", "decided", "created", "launched", "unavailable", "first", "last", "horizon",
    ]
)  # fmt: skip
"""Fields that hold times in ms since the epoch. `unavailable` maps names to such times."""
_EARLIEST = 10**11
"""The year 1973, in ms: what is less is a duration, or 0 for never."""


def with_times(value: Any) -> Any:
    """Return structs as plain values for JSON, with each time of `TIMES` as text beside it."""
    return _beside(msgspec.to_builtins(value))


def _beside(plain: Any) -> Any:
    if isinstance(plain, list | tuple):
        return [_beside(part) for part in plain]
    if not isinstance(plain, dict):
        return plain
    told: dict[str, Any] = {}
    for name, part in plain.items():
        told[name] = _beside(part)
        if name in TIMES:
            text = _text(part)
            if text:
                told[name + SUFFIX] = text
    return told


def _text(part: Any) -> Any:
    """Return a time, or a map of times, as text; nothing for what is no time."""
    if isinstance(part, dict):
        return {name: moment(time) for name, time in part.items() if _is_time(time)}
    return moment(part) if _is_time(part) else None


def _is_time(part: Any) -> bool:
    return isinstance(part, int) and part >= _EARLIEST
