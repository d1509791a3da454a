"""Check the documents that users write for replay, policies and declared changes: no key that nobody reads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.replay.errors import ReplayError


def mapping_of(value: object, known: Collection[str], where: str, refused: type[ReplayError]) -> dict[str, Any]:
    """Return a value that is a mapping with known keys alone. Raises `refused`, with the nearest known key."""
    if not isinstance(value, dict):
        raise refused("here stands no mapping", where=where, hint=f"Write it with the keys {', '.join(known)}")
    for key in value:
        if key not in known:
            raise refused(f"there is no key {key!r}", where=where, hint=nearest(str(key), known))
    return value


def list_of(value: object, where: str, refused: type[ReplayError]) -> list[Any]:
    """Return a value that is a list with something in it. Raises `refused`."""
    if not isinstance(value, list) or not value:
        raise refused("here stands no list, or an empty one", where=where, hint='Begin each line of it with "- "')
    return value


def nearest(name: str, known: Collection[str]) -> str:
    """Return the hint for a name that is not known: the one that is spelt most like it, or all."""
    return is_it(did_you_mean(name, known)) or f"Known are {', '.join(known)}"
