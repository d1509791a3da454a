"""Plain text for people: tables, counts, lists that do not run away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerf.projections.prose.printable import printable


def table_lines(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """The rows as lines in columns. Nothing is wrapped or cut off, whatever the terminal's width: a line is copied, or
    searched by `grep`, whole."""
    from kerf.adapters.cli.render.console import columns

    return [(indent + line).rstrip() for line in columns([printable(cell) for cell in row] for row in rows)]


def counted(number: int, noun: str) -> str:
    """ "1 pod", "2 pods"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


MAX_NAMES_SHOWN = 5
"""How many names a line of an explanation shows; a table shows fewer."""


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few of the names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def dollars(amount: float) -> str:
    """US dollars, to a hundredth of a cent."""
    return f"${amount:,.4f}"
