"""The one way in which commands say how far long work is: a line on the terminal's standard error, after two seconds.

Standard output is left alone, so the line is there also with `--json`. Whatever is printed removes it first. Where
somebody presses Ctrl-C, the command says how far it came. Apart from these words, it imports nothing that a help page
would wait for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHOWN_AFTER, REFRESHED = 2.0, 0.2
"""Seconds from the beginning of the work to the line, and between two of its states."""


class ProgressLine:
    """How far one piece of work is. `show` puts a position, or whatever counts here, into words.

    Of several pieces that are under way, one within the other, the inner one is told.
    """

    def __init__(self, what: str, show: Callable[[int], str] = "{:,}".format) -> None:
        self._what, self._show = what, show
        self._due = time.monotonic() + SHOWN_AFTER
        self._at = 0

    def tell(self, at: int) -> None:
        self._at = at
        if self in _under_way[:-1]:
            return
        now = time.monotonic()
        if now >= self._due and sys.stderr.isatty():
            self._due = now + REFRESHED
            _terminal.show(self.text())

    def text(self) -> str:
        """How far it is, in words; "" for not yet."""
        return f"{self._what} {self._show(self._at)}" if self._at else ""

    @staticmethod
    def clear() -> None:
        clear_progress()


class _Terminal:
    """The line that is shown on standard error, if any."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, line: str) -> None:
        self._width = max(self._width, len(line))
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()

    def clear(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


_terminal = _Terminal()
_under_way: list[ProgressLine] = []
_ended_at = ""


def clear_progress() -> None:
    """Remove the line, so that something else can be printed."""
    _terminal.clear()


@contextmanager
def progress_line(what: str) -> Iterator[Callable[[int], None]]:
    """Show how far long work is, by position. The line is removed at the end."""
    global _ended_at  # noqa: PLW0603 - a process runs one command at a time
    line = ProgressLine(what)
    _under_way.append(line)
    try:
        yield line.tell
    except KeyboardInterrupt:
        _ended_at = _ended_at or line.text()
        raise
    finally:
        _under_way.remove(line)
        clear_progress()


def how_far() -> str:
    """How far the work was that Ctrl-C ended; "" where nobody knows. It is asked once."""
    global _ended_at
    told, _ended_at = _ended_at, ""
    return told
