"""What an assertion finds in a record: what it is about, and where it does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from kerf.replay.policies.evidence import Evidence, Window
from kerf.replay.policies.forms import Bound
from kerf.replay.policies.outcomes import Breach
from kerf.replay.policies.selectors import Selector

T = TypeVar("T")
RECORD = "RECORD"
"""Stands for the record in the command that explains a breach."""


class Asked(Struct, frozen=True):
    """What an assertion asks of a record: within which bound, of what, and when."""

    bound: Bound
    selector: Selector
    window: Window

    def is_within(self, at: int) -> bool:
        return self.window.since <= at <= self.window.until


class Found(Struct, frozen=True):
    """How many things an assertion was about, and its breaches in the order of their time. `note` says what it could
    not look at."""

    looked_at: int
    breaches: list[Breach]
    note: str = ""


Check = Callable[[Evidence, Asked], Found]


def groups(things: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Sort things into groups, in the order of their first."""
    found: dict[str, list[T]] = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return found


def of_words(selector: Selector) -> str:
    """Write what was selected, to follow what is said of it."""
    return f" of {selector.words}" if selector.words else ""
