"""One short transaction in either database, in the SQL that both understand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Session(Protocol):
    """Statements have `?` for values, and may name `{position}` (the column of stored_events that is the position),
    `{blob}` and `{bigint}` (types). A session that commits holds the lock that writers wait for."""

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of the answer, none where it has none."""
        ...

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Once for each row of values."""
        ...
