"""The help of `kerf` itself. It is written without cyclopts and rich, which take longer to import than to use."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from kerf.adapters.cli.command_table import COMMANDS, DESCRIPTION, GROUPS
from kerf.adapters.cli.render.width import asked_width, terminal_width

_FLAGS = {
    "--debug": "Show the traceback of what ended it, and of defects that it survived.",
    "--no-limits": "Let a record take any CPU time and memory.",
    "--help (-h)": "Display the command's help and exit.",
    "--version": "Display kerf's version and exit.",
}
_BOXES = {True: tuple("╭╮╰╯─│"), False: tuple("++++-|")}
"""Corners (top left, top right, bottom left, bottom right) and lines; the second where there is no Unicode."""


def overview() -> str:
    """Usage, description, and all commands by group, with a line of theirs; as wide as the terminal."""
    width = asked_width() or terminal_width()
    lines = ["Usage: kerf COMMAND", "", *textwrap.wrap(DESCRIPTION, width), ""]
    summaries = {command.name: command.summary.replace("`", "") for command in COMMANDS}
    names = max(map(len, (*summaries, *_FLAGS))) + 2
    for title, group in GROUPS.items():
        lines += _panel(title, {name: summaries[name] for name in group}, width, names)
    lines += _panel("With any command", _FLAGS, width, names)
    return "\n".join(lines)


def _panel(title: str, rows: dict[str, str], width: int, names: int) -> Iterator[str]:
    """Two columns in a box, as cyclopts has them in the help of a command. `names` is the width of the first."""
    top_left, top_right, bottom_left, bottom_right, line, side = _BOXES[_has_unicode()]
    inner = width - 4
    yield f"{top_left}{line} {title} ".ljust(width - 1, line) + top_right
    for name, text in rows.items():
        label = name
        for part in textwrap.wrap(text, inner - names):
            yield f"{side} {(label.ljust(names) + part).ljust(inner)} {side}"
            label = ""
    yield bottom_left + line * (width - 2) + bottom_right


def _has_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
