"""Find the first place in which two entries differ, as a path like `payload.result.claims[0].price`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kerf.engine.record.entries import Entry, UnknownEntry

ABSENT = "(absent)"
"""Stands for a field that one side does not have."""


class Difference(Struct, frozen=True):
    """The first difference. `path` is empty when there is none."""

    path: str
    recorded: Any
    remade: Any


def plain(entry: Entry) -> dict[str, Any]:
    """Turn an entry into builtins, for people and for JSON. The bytes of an unknown payload become hex."""
    payload = entry.payload
    shown = bytes(payload.raw).hex() if isinstance(payload, UnknownEntry) else payload
    fields = {name: getattr(entry, name) for name in Entry.__struct_fields__ if name != "payload"}
    return {**fields, "payload": _builtins(shown)}


def _builtins(value: Any) -> Any:
    """Turn a value into builtins, with the names of fields also where the encoding leaves them out, as it does of
    offers."""
    if isinstance(value, Struct) and value.__struct_config__.array_like:
        return {name: _builtins(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Struct):
        fields = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
        encoded = msgspec.to_builtins(value)
        return {key: _builtins(getattr(value, fields[key])) if key in fields else encoded[key] for key in encoded}
    if isinstance(value, list | tuple):
        return [_builtins(item) for item in value]
    if isinstance(value, dict):
        return {key: _builtins(item) for key, item in value.items()}
    return msgspec.to_builtins(value)


def first_difference(recorded: Any, remade: Any, path: str = "") -> Difference:
    """Compare two builtins (see `plain`): lists by index, maps by key, in the order of the first and then of the
    second."""
    if isinstance(recorded, dict) and isinstance(remade, dict):
        pairs = [(f"{path}.{key}" if path else key, recorded.get(key, ABSENT), remade.get(key, ABSENT))
                 for key in {**recorded, **remade}]  # fmt: skip
    elif isinstance(recorded, list | tuple) and isinstance(remade, list | tuple):
        longest = max(len(recorded), len(remade))
        pairs = [(f"{path}[{i}]", _at(recorded, i), _at(remade, i)) for i in range(longest)]
    elif type(recorded) is type(remade) and repr(recorded) == repr(remade):
        return Difference("", None, None)
    else:
        return Difference(path, recorded, remade)
    for item_path, old, new in pairs:
        difference = first_difference(old, new, item_path)
        if difference.path:
            return difference
    return Difference("", None, None)


def _at(items: list[Any] | tuple[Any, ...], index: int) -> Any:
    return items[index] if index < len(items) else ABSENT
