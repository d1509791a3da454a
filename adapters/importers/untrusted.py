"""Values out of files that strangers wrote: JSON, times, names and amounts. What does not fit is none, and no error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_time
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.quantities import parse_quantity
from kerf.engine.record.codec import LAST_MOMENT

MAX_LINE = 16 << 20
"""Bytes. A longer line is not read: an API server's largest object has some 1.5 MiB."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._:]*[A-Za-z0-9])?")
_LONGEST_NAME = 253
_BARE_OFFSET = re.compile(r"([+-]\d\d)(\d\d)$")

_json = msgspec.json.Decoder()


def json_of(text: str | bytes, largest: int = MAX_LINE) -> Any:
    """The JSON value; None for what is none, for one that is nested too deeply, and for one that is too long."""
    if len(text) > largest:
        return None
    try:
        return _json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return None


def json_text(value: dict[str, Any]) -> str:
    """An object that was read, as JSON again."""
    return msgspec.json.encode(value).decode()


def object_of(text: str | bytes) -> dict[str, Any] | None:
    value = json_of(text)
    return value if isinstance(value, dict) else None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def whole_number(value: object) -> int:
    """The number if it is one that a record can keep; else 0."""
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def time_of(value: object) -> int | None:
    """An RFC 3339 time in ms since the epoch. Also zap's form, whose offset has no colon (F-55)."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        at = parse_time(_BARE_OFFSET.sub(r"\1:\2", value))
    except InputError:
        return None
    return at if 0 <= at <= LAST_MOMENT else None


def name_of(value: object) -> str:
    """The name of an object, given alone or as {"name": …}; "" for what cannot be one."""
    if isinstance(value, dict):
        value = value.get("name")
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME or _NAME.fullmatch(value) is None:
        return ""
    return value


def key_of(value: object) -> str:
    """namespace/name of {"namespace": …, "name": …}; "" for what is none."""
    if not isinstance(value, dict):
        return ""
    namespace, name = name_of(value.get("namespace")), name_of(value)
    return f"{namespace}/{name}" if namespace and name else ""


def resources_of(value: object) -> Resources:
    """A map of quantities, without those that are none."""
    found: Resources = {}
    for resource, amount in sorted(value.items()) if isinstance(value, Mapping) else ():
        try:
            parsed = parse_quantity(amount, resource) if isinstance(amount, str | int | float) else -1
        except InputError:
            continue
        if parsed >= 0 and isinstance(resource, str):
            found[resource] = parsed
    return found
