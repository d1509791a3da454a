"""Put amounts into words: counts, durations, times and prices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # seconds: the years 1 to 9999
_GI = 2**30
_BYTES = ("memory", "ephemeral-storage")
_MAX_NAMES = 5
"""At most this many names of a list are written out."""


def count(number: int, noun: str) -> str:
    """Write a count with its noun: 1 pod, 3 pods, 2 launches. The noun takes s, or es after ch."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def first_names(names: Sequence[str]) -> str:
    """Write the first names of a list, and how many more there are."""
    listed = ", ".join(names[:_MAX_NAMES])
    return f"{listed} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else listed


def saved(dollars: float) -> str:
    """Write what a change saves in an hour, or what it costs."""
    return f"to save ${dollars:.2f}/h" if dollars >= 0 else f"for ${-dollars:.2f}/h more"


def duration(milliseconds: int) -> str:
    """Write a duration as Go does, in its two largest units: 1h30m, 12.5s, 340ms."""
    sign, rest = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    if rest < 1_000:
        return f"{sign}{rest}ms" if rest else "0s"
    if rest < 60_000:
        return f"{sign}{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    seconds = rest // 1000
    for unit, size, lower, lower_size in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            part = seconds % size // lower_size
            return f"{sign}{seconds // size}{unit}" + (f"{part}{lower}" if part else "")
    raise AssertionError(milliseconds)


def moment(milliseconds: int) -> str:
    """Write a time as RFC 3339 in UTC with milliseconds; one that no calendar has, as a number."""
    whole, part = divmod(milliseconds, 1000)
    if not _FIRST <= whole <= _LAST:
        return f"{milliseconds}ms after 1970"
    return f"{_second(whole)}.{part:03d}Z"


@lru_cache(4096)  # what happens comes in bursts, and a long answer names the same seconds again and again
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def dollars(amount: float) -> str:
    return f"${amount:,.4f}"


def rounded(amount: int, resource: str) -> str:
    """Write an amount of a resource to be read at a glance: in cores or Gi, with one decimal at most; less than one Gi
    in Mi."""
    if resource == "cpu":
        return f"{amount / 1000:,.1f}".removesuffix(".0")
    if resource not in _BYTES:
        return f"{amount:,}"
    if 0 < amount < _GI:
        return f"{amount / 2**20:,.0f}Mi"
    return f"{amount / _GI:,.1f}".removesuffix(".0") + "Gi"
