"""Plain text for people: columns that line up, lists that do not run away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def columns(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """The rows as lines, every column as wide as its widest cell."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [(indent + "  ".join(map(str.ljust, row, widths))).rstrip() for row in cells]


def counted(number: int, noun: str) -> str:
    """ "1 pod", "2 pods"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few of the names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def dollars(amount: float) -> str:
    """US dollars, to a hundredth of a cent."""
    return f"${amount:,.4f}"
