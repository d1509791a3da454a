"""Which fields of the state are times that a record measured itself: every number is one or is named here (ADR 9)."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from kerf.engine.state.clocks import HOLDERS, TIMES
from kerf.engine.state.state import Facts

NO_TIMES = {
    "Facts": {"position", "epoch", "streams", "buffered", "plan", "over", "cut", "unknown", "at"},
    "NodeClaim": {
        "version", "requested", "expire_after", "termination_grace_period", "volumes", "evicted", "forced",
        "interrupted", "deadline", "requests", "capacity", "allocatable", "turns",
    },
    "Effect": {"attempts", "done", "grace"},
    "Orphan": {"attempts"},
    "Found": {"position"},
    "Search": {"attempts"},
    "Hold": {"times"},
    "StaticPool": {"failures"},
}  # fmt: skip
"""Numbers that count something, lengths of time, and times that others have measured."""


def numbers(struct: type[Struct]) -> Iterator[str]:
    """The fields that are an int, or a map to ints."""
    for name, hint in typing.get_type_hints(struct).items():
        parts: set[Any] = {hint, *typing.get_args(hint)[-1:], *typing.get_args(hint)[:1]}
        if int in parts:
            yield name


def test_every_number_of_the_state_is_known_to_be_a_time_or_not() -> None:
    for struct, times in TIMES.items():
        assert set(numbers(struct)) == {*times} | NO_TIMES.get(struct.__name__, set()), struct


def test_every_map_of_structs_with_times_is_moved() -> None:
    hints = typing.get_type_hints(Facts)
    held = {name for name, hint in hints.items() for part in typing.get_args(hint)[1:] if part in TIMES}
    assert held == set(HOLDERS)
