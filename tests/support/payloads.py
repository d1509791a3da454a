"""Strategies for anything that may stand in the record, made from the types' own hints."""

from __future__ import annotations

import types
import typing
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from kerf.engine.record.entries import Entry, EntryType
from kerf.engine.record.entry_types import TYPES

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(-(1 << 63), (1 << 64) - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    type(None): st.none(),
}


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type hint: plain types, structs, unions, tuples, lists and maps of them."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return struct(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return st.one_of([of(argument) for argument in arguments])
    if origin is dict:
        return st.dictionaries(of(arguments[0]), of(arguments[1]), max_size=3)
    if origin is list:
        return st.lists(of(arguments[0]), max_size=2)
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(of(arguments[0]), max_size=2).map(tuple)
    raise TypeError(f"no strategy for {hint!r}: add one")


_structs: dict[type[Struct], st.SearchStrategy[Any]] = {}


def struct(kind: type[Struct]) -> st.SearchStrategy[Any]:
    """Values of a struct, every field drawn. One that holds others of its kind holds some that hold none."""
    if kind not in _structs:
        hints = {name: typing.get_type_hints(kind)[name] for name in kind.__struct_fields__}
        own = [name for name, hint in hints.items() if kind in typing.get_args(hint)]
        plain = {name: of(hint) for name, hint in hints.items() if name not in own}
        _structs[kind] = st.builds(kind, **plain)
        if own:
            _structs[kind] = st.builds(kind, **plain, **{name: of(hints[name]) for name in own})
    return _structs[kind]


def entries(known: EntryType) -> st.SearchStrategy[Entry]:
    """Entries of one type; times within the years 1970 to 2500."""
    positions = st.integers(1, 1 << 53)
    return st.builds(
        Entry,
        position=positions,
        turn=positions,
        stream=TEXT,
        version=positions,
        type=st.just(known.name),
        schema=st.just(known.schema),
        at=st.integers(0, 16_725_225_600_000),
        cause=st.integers(0, 1 << 53),
        epoch=st.integers(0, 1 << 31),
        payload=struct(known.payload),
    )


any_entry = st.sampled_from(sorted(TYPES)).flatmap(lambda name: entries(TYPES[name]))
