"""One short transaction, in the SQL that both databases understand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Session(Protocol):
    """Runs statements in one transaction. A session that commits holds the lock that writers wait for.

    Statements have `?` for values, and may contain `{position}` (the column of stored_events that holds the position),
    `{blob}` and `{bigint}` (types).
    """

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Runs a statement and returns the rows of its answer, if any."""
        ...

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Runs a statement once for each row of values."""
        ...
