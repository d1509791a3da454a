"""What is made of a value once, and kept beside its fields for as long as the value is in use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from msgspec import Struct

_Made = TypeVar("_Made")


def once(value: Struct, what: Hashable, make: Callable[[], _Made]) -> _Made:
    """Something that follows from this frozen value (a struct with `dict=True`) and from `what` alone.

    Many passes see the same values. What is kept counts neither for their equality nor for their encoding.
    """
    known: dict[Hashable, _Made] = value.__dict__.setdefault("made once", {})
    if what not in known:
        known[what] = make()
    return known[what]
