"""The envelope of the record, and the declaration of an entry type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct


class Entry(Struct, frozen=True):
    """One line of the record.

    `position` is global: from 1, without gaps. `turn` is the position of the first entry of the same turn (one
    transaction). `at` is the turn's time in milliseconds since the epoch. `cause` is the position of the entry that
    brought this one about, 0 for none. `payload` is a struct of a known type or an `UnknownEntry`.
    """

    position: int
    turn: int
    stream: str
    version: int
    type: str
    schema: int
    at: int
    cause: int
    epoch: int
    payload: Any


class UnknownEntry(Struct, frozen=True):
    """The payload of an entry whose type or schema this version does not know. It is kept and reported; the fold skips
    it.
    """

    type: str
    schema: int
    raw: Raw


class EntryType(Struct, frozen=True):
    """A known type: its explicit name, current schema version, payload struct, and its upcasters.

    `upcasters[n]` turns the plain payload (msgspec builtins) of schema n into that of schema n+1, one step each.
    """

    name: str
    schema: int
    payload: type[Struct]
    upcasters: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
