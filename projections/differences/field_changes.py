"""The fields in which two documents differ, each with its value before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

MAX_SHOWN = 120
"""Longer texts are shown by their beginning: they are texts of users, never parts of JSON."""
_EMPTY = "[]"
_NAMED_BY = ("key", "name", "deviceName", "type", "id")


class FieldChange(Struct, frozen=True):
    """One field: its path as in a manifest, its values before and after; None where it is absent."""

    field: str
    was: str | None
    now: str | None

    @property
    def words(self) -> str:
        """ "spec.weight 10 → 20". A field that comes or goes has "none" on that side."""
        return f"{self.field} {'none' if self.was is None else self.was} → {'none' if self.now is None else self.now}"


def field_changes(was: Any, now: Any) -> tuple[FieldChange, ...]:
    """Return the fields in which two documents differ, in order of their paths.

    Items of lists are known by what names them (their key, name or type), else by their number. Lists of plain values
    are one field. An empty list that gets items, or the other way round, is told by its items.
    """
    before, after = flat(was), flat(now)
    paths = sorted(before.keys() | after.keys())
    return tuple(
        FieldChange(path, before.get(path), after.get(path))
        for path in paths
        if before.get(path) != after.get(path) and not _told_by_items(path, before, after, paths)
    )


def _told_by_items(path: str, before: dict[str, str], after: dict[str, str], paths: list[str]) -> bool:
    """Whether a path is that of an empty list on one side, whose items on the other have paths of their own."""
    sides = (before.get(path), after.get(path))
    return sides in ((_EMPTY, None), (None, _EMPTY)) and any(other.startswith(f"{path}[") for other in paths)


def flat(document: Any, path: str = "") -> dict[str, str]:
    """Return the document as path → text. Empty maps and lists of maps have no path."""
    if isinstance(document, Mapping):
        parts = ((f"{path}{_step(str(name), path)}", part) for name, part in document.items())
        return {where: text for way, part in parts for where, text in flat(part, way).items()}
    if isinstance(document, list | tuple) and any(isinstance(item, Mapping | list | tuple) for item in document):
        names = _names(document)
        return {
            where: text
            for name, item in zip(names, document, strict=True)
            for where, text in flat(_unnamed(item, name), f"{path}[{name}]").items()
        }
    return {path: _text(document)} if document is not None else {}


def _step(name: str, path: str) -> str:
    """Write one step of a path; a name with dots or slashes in brackets."""
    if not name.isidentifier():
        return f"[{name}]"
    return f".{name}" if path else name


def _names(items: list[Any] | tuple[Any, ...]) -> list[str]:
    """Name each item of a list, by what names it if that is unique there."""
    for key in _NAMED_BY:
        names = [str(item.get(key, "")) if isinstance(item, Mapping) else "" for item in items]
        if all(names) and len(set(names)) == len(names):
            return names
    return [str(number) for number in range(len(items))]


def _unnamed(item: Any, name: str) -> Any:
    """Leave out what names an item and is said already, unless there is nothing else."""
    if not isinstance(item, Mapping):
        return item
    rest = {key: part for key, part in item.items() if not (key in _NAMED_BY and str(part) == name)}
    return rest or item


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(_text, value))}]"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = '""' if text == "" else text
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"
