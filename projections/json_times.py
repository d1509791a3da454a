"""JSON for programs and people: beside each time as a number stands the same as RFC 3339."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct, inspect
from msgspec.structs import astuple

from kerf.projections.prose.amounts import moment

SUFFIX = "_time"
"""The text beside the number `at` is named `at_time`."""
TIMES = frozenset(
    [
        "at", "now", "since", "until", "due", "forced_at", "window_closes", "proposed", "started", "ready", "retry_at",
        "look_at", "decided", "drifted_since", "created", "launched", "unavailable", "first", "last", "horizon",
    ]
)  # fmt: skip
"""Fields that hold times in ms since the epoch. `unavailable` maps names to such times."""
_EARLIEST = 10**11
"""The year 1973, in ms: what is less is a duration, or 0 for never."""


_LEAVES = frozenset((str, int, float, bool, type(None)))
_LISTS = (list, tuple)


def with_times(value: Any) -> Any:
    """Return structs as values for JSON, with each time of `TIMES` as text beside it. What has no times stays as it is:
    msgspec encodes that alike."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is dict:
        return _beside(value)
    if isinstance(value, Struct):
        return _with_times_of(value)
    if isinstance(value, _LISTS):
        return value if all(map(_timeless, set(map(type, value)))) else [with_times(part) for part in value]
    return _beside(value) if isinstance(value, dict) else value


def _with_times_of(value: Struct) -> Any:
    kind = type(value)
    if not _has_times(kind):
        return value
    if not _is_plain(kind):
        return with_times(msgspec.to_builtins(value))
    told: dict[Any, Any] = {}
    for (name, may, timed), part in zip(_fields(kind), astuple(value), strict=True):
        told[name] = with_times(part) if may else part
        if timed:
            _tell(told, name, part)
    return told


def _beside(named: dict[Any, Any]) -> dict[Any, Any]:
    if TIMES.isdisjoint(named) and _LEAVES.issuperset(map(type, named.values())):
        return named
    told: dict[Any, Any] = {}
    for name, part in named.items():
        told[name] = part if type(part) in _LEAVES else with_times(part)
        if name in TIMES:
            _tell(told, name, part)
    return told


def _tell(told: dict[Any, Any], name: Any, part: Any) -> None:
    if type(part) is not int:
        text = _text(msgspec.to_builtins(part))
        if text:
            told[name + SUFFIX] = text
    elif part >= _EARLIEST:
        told[name + SUFFIX] = moment(part)


@cache
def _fields(kind: type[Struct]) -> tuple[tuple[str, bool, bool], ...]:
    """Return the fields of a struct that may hold times, each with whether its value may hold some, too, and whether it
    is one."""
    try:
        types = {field.name: field.type for field in inspect.type_info(kind).fields}  # type: ignore[attr-defined]
    except TypeError:  # a type that msgspec cannot tell of
        return tuple((name, True, name in TIMES) for name in kind.__struct_fields__)
    return tuple((name, _may(types[name], set()), name in TIMES) for name in kind.__struct_fields__)


@cache
def _is_plain(kind: type[Struct]) -> bool:
    """Return whether a struct's JSON is a map of all its fields by their names."""
    how = kind.__struct_config__
    as_named = kind.__struct_encode_fields__ == kind.__struct_fields__
    return as_named and how.tag is None and not how.array_like and not how.omit_defaults


@cache
def _timeless(kind: type) -> bool:
    """Return whether no value of a kind holds a time."""
    return kind in _LEAVES or (issubclass(kind, Struct) and not _has_times(kind))


@cache
def _has_times(kind: type[Struct]) -> bool:
    """Return whether a struct may hold a time, or something whose type does not say that it holds none."""
    try:
        return _may(inspect.type_info(kind), set())
    except TypeError:  # a type that msgspec cannot tell of
        return True


def _may(told: inspect.Type, seen: set[type]) -> bool:
    match told:
        case inspect.StructType(cls=kind):
            if kind in seen:
                return False
            seen.add(kind)
            return any(field.name in TIMES or _may(field.type, seen) for field in told.fields)
        case inspect.UnionType(types=types):
            return any(_may(each, seen) for each in types)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return _may(item, seen)
        case inspect.TupleType(item_types=types):
            return any(_may(each, seen) for each in types)
        case inspect.DictType(value_type=value):  # a key may be the name of a time
            return not isinstance(value, inspect.CollectionType | inspect.StrType | inspect.FloatType) or _may(
                value, seen
            )
        case inspect.Metadata(type=inner):
            return _may(inner, seen)
        case _:
            return not isinstance(told, _TIMELESS)


_TIMELESS = (
    inspect.StrType, inspect.IntType, inspect.FloatType, inspect.BoolType, inspect.NoneType, inspect.LiteralType,
    inspect.EnumType,
)  # fmt: skip
"""Types of values that hold nothing under a name."""


def _text(part: Any) -> Any:
    """Return a time, or a map of times, as text; nothing for what is no time."""
    if isinstance(part, dict):
        return {name: moment(time) for name, time in part.items() if _is_time(time)}
    return moment(part) if _is_time(part) else None


def _is_time(part: Any) -> bool:
    return isinstance(part, int) and part >= _EARLIEST
