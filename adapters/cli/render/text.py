"""Plain text for people: tables, counts, lists that do not run away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kerf.projections.prose.printable import printable


def table_lines(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """The rows as lines in columns. Nothing is wrapped or cut off, whatever the terminal's width: a line is copied, or
    searched by `grep`, whole."""
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(printable(cell), no_wrap=True, overflow="ignore") for cell in row))
    console = Console(width=10_000, color_system=None, force_terminal=False)
    lines = console.render_lines(table, pad=False)
    return [(indent + "".join(segment.text for segment in line)).rstrip() for line in lines]


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
