"""How commands print: JSON for programs, plain lines with a little colour for people."""

from __future__ import annotations

from typing import Any

import msgspec

from kerf.adapters.cli.render.lines import print_json
from kerf.adapters.cli.render.progress import clear_progress
from kerf.adapters.cli.render.text import table_lines
from kerf.engine.errors import InputError
from kerf.projections.prose.printable import printable

STYLES = {"debug": "dim", "info": "", "warning": "yellow", "error": "bold red", "title": "bold", "good": "green"}
_MARGIN = 14


def one_form(*, json: bool, csv: bool = False, markdown: bool = False) -> None:
    """Raise InputError (KERF200) for two forms of one answer."""
    asked = [flag for flag, given in (("--json", json), ("--csv", csv), ("--markdown", markdown)) if given]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)} are two forms of one answer", hint="Give one of them", code="KERF200")


def emit_json(value: Any) -> None:
    """One JSON document: structs, in the order of their fields."""
    encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
    print_json(encoded.decode())


def emit_json_line(value: Any) -> None:
    """One JSON object on one line."""
    print_json(msgspec.json.encode(value).decode())


class Printer:
    """Lines of text; colour only on a terminal; never wrapped, so that pipes and `grep` see whole lines."""

    def __init__(self, indent: str = "") -> None:
        from kerf.adapters.cli.render.console import Lines

        self._console = Lines()
        self._indent = indent

    @property
    def terminal(self) -> bool:
        """Whether output goes to a terminal."""
        return self._console.is_terminal

    def indented(self, by: str = "   ") -> Printer:
        """A printer whose lines stand further to the right."""
        return Printer(self._indent + by)

    def line(self, text: str = "", style: str = "info") -> None:
        clear_progress()
        self._console.say((self._indent + printable(text) if text else "", STYLES[style]))

    def timed(self, time: str, text: str, style: str = "info") -> None:
        """A line with a time in the margin."""
        clear_progress()
        self._console.say((f"{self._indent}{time:>{_MARGIN - 2}}  ", "dim"), (printable(text), STYLES[style]))

    def table(self, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        """Columns as wide as their widest cell."""
        first, *rest = table_lines([header, *rows])
        self.line(first, "title")
        for line in rest:
            self.line(line)
