"""The command line's text as data: the page shows these sentences, and writes none of its own."""

from __future__ import annotations

from msgspec import Struct

from kerf.adapters.cli.render.output import Printer
from kerf.projections.prose.printable import printable


class TextLine(Struct, frozen=True):
    """A line of text. `style` is that of the command line: info, debug, warning, error, title, good."""

    text: str
    style: str = "info"


class LinesPrinter(Printer):
    """A printer that keeps its lines."""

    def __init__(self, indent: str = "", lines: list[TextLine] | None = None) -> None:
        super().__init__(indent)
        self.lines: list[TextLine] = [] if lines is None else lines

    @property
    def terminal(self) -> bool:
        return False

    def indented(self, by: str = "   ") -> LinesPrinter:
        return LinesPrinter(self._indent + by, self.lines)

    def line(self, text: str = "", style: str = "info") -> None:
        self.lines.append(TextLine(self._indent + printable(text) if text else "", style))

    def timed(self, time: str, text: str, style: str = "info") -> None:
        self.line(f"{time:>12}  {text}", style)
