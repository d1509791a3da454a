"""Pieces of Markdown in which nothing that others wrote becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kerf.projections.prose.printable import printable

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~@])")


def words(text: str) -> str:
    """Return text that shows as it is."""
    return _MARKUP.sub(r"\\\1", printable(text))


def code(text: str) -> str:
    """Return text as code on one line."""
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{ticks} {printable(text)} {ticks}" if len(ticks) > 1 else f"`{printable(text)}`"


def table_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, whose cells are Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
