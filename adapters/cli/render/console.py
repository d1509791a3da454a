"""Lines and tables made by rich. It takes a twentieth of a command's start: whoever prints JSON imports none of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from errno import EPIPE
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kerf.adapters.cli.render.width import asked_width, terminal_width


class Output(Console):
    """Standard output: no markup is read in what is printed.

    Where NO_COLOR is set there is no escape code at all. Rich leaves out the colours alone, and goes on with bold and
    dim: but who sets it, for a log say, wants plain text. For TERM=dumb rich leaves out all.
    """

    def __init__(self, *, soft_wrap: bool = False) -> None:
        escapes: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        width = asked_width() or terminal_width()  # rich prints nothing where COLUMNS is 0
        super().__init__(
            soft_wrap=soft_wrap, highlight=False, markup=False, emoji=False, color_system=escapes, width=width
        )


class Lines(Output):
    """Standard output, without wrapping. It leaves it to `main` what a reader means that has seen enough: rich would
    exit with 1, as what diverged does."""

    def __init__(self) -> None:
        super().__init__(soft_wrap=True)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(EPIPE, "the reader has seen enough")

    def say(self, *parts: tuple[str, str]) -> None:
        """Print a line of texts, each with its style."""
        self.print(Text.assemble(*parts))


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """The rows as lines in columns, whatever the terminal's width."""
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ignore") for cell in row))
    lines = Console(width=10_000, color_system=None, force_terminal=False).render_lines(table, pad=False)
    return ["".join(segment.text for segment in line) for line in lines]
