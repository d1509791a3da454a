"""Read the values of assertions: flags, numbers, durations, shares, counts and patterns."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_go_duration
from kerf.replay.errors import PolicyRefused
from kerf.replay.user_documents import list_of, mapping_of, nearest

WHOLE = 1.0
PER = ("workload", "namespace", "pod", "pool", "node", "reason", "hour")
"""What `per` may name: a limit then holds for each of them."""


class Bound(Struct, frozen=True, kw_only=True):
    """What an assertion allows: `most` (a count, an amount, a share or ms), for each group of `per`, for a `share` of
    what it is about, or the `patterns` that it names."""

    most: float = 0.0
    per: tuple[str, ...] = ()
    share: float = WHOLE
    patterns: tuple[str, ...] = ()


Form = Callable[[object, str], Bound]
"""Reads the value at a place. Raises PolicyRefused (KERF221)."""


def flag(value: object, where: str) -> Bound:
    if value is not True:
        raise _bad("there is no opposite of this assertion", where, "Write true, or leave it out")
    return Bound()


def number(value: object, where: str) -> Bound:
    return Bound(most=_number(value, where))


def count(value: object, where: str) -> Bound:
    """Read a number, or {count: NUMBER, per: WHAT}, where `per` is one of PER or a list of them."""
    if not isinstance(value, dict):
        return number(value, where)
    parts = mapping_of(value, ("count", "per"), where, PolicyRefused)
    per = parts.get("per", [])
    names = [str(name) for name in (per if isinstance(per, list) else [per])]
    for name in names:
        if name not in PER:
            raise _bad(f"nothing is counted per {name!r}", f"{where}.per", nearest(name, PER))
    return Bound(most=_number(parts.get("count"), f"{where}.count"), per=tuple(names))


def wait(value: object, where: str) -> Bound:
    """Read a duration, or {duration: DURATION, share: SHARE} for a share of the pods."""
    if not isinstance(value, dict):
        return Bound(most=_duration(value, where))
    parts = mapping_of(value, ("duration", "share"), where, PolicyRefused)
    most = _duration(parts.get("duration"), f"{where}.duration")
    return Bound(most=most, share=_share(parts.get("share", WHOLE), f"{where}.share"))


def share(value: object, where: str) -> Bound:
    return Bound(most=_share(value, where))


def patterns(value: object, where: str) -> Bound:
    """Read a name or a list of names, in which "*" stands for any characters."""
    names = value if isinstance(value, list) else [value]
    return Bound(patterns=tuple(_text(name, where) for name in list_of(names, where, PolicyRefused)))


def kinds_of(known: tuple[str, ...]) -> Form:
    """Return the form of `true`, or of a list of these words."""

    def read(value: object, where: str) -> Bound:
        if value is True:
            return Bound(patterns=known)
        named = patterns(value, where)
        for name in named.patterns:
            if name not in known:
                raise _bad(f"there is no {name!r}", where, nearest(name, known))
        return named

    return read


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise _bad(f"{value!r} is no number of 0 or more", where, "Write a number, such as 3 or 1.5")
    return float(value)


def _duration(value: object, where: str) -> float:
    try:
        return float(parse_go_duration(_text(value, where)))
    except InputError as error:
        raise _bad(error.message, where, error.hint) from error


def _share(value: object, where: str) -> float:
    text = str(value).removesuffix("%")
    try:
        found = float(text) / (100 if str(value).endswith("%") else 1)
    except ValueError:
        found = -1.0
    if isinstance(value, bool) or not 0 <= found <= WHOLE:
        raise _bad(f"{value!r} is no share", where, 'Write "95%", or 0.95')
    return found


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise _bad(f"{value!r} is no text", where, "Write it in quotes")
    return value


def _bad(what: str, where: str, hint: str) -> PolicyRefused:
    return PolicyRefused(what, where=where, hint=hint)
