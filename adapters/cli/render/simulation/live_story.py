"""What happens in a simulation, printed while it happens: lines with the virtual time beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which

from kerf.adapters.cli.render.output import Printer
from kerf.engine.record.entries import Entry
from kerf.projections.differences.documents import Shapes
from kerf.projections.timeline.event import DEBUG, event_sentence
from kerf.projections.timeline.grouping import group_events
from kerf.projections.timeline.timeline import Timeline

DAY = 86_400_000


def elapsed_text(elapsed: int) -> str:
    """Virtual time since the start as +h:mm:ss.t, with days where there are any."""
    days, rest = divmod(elapsed, DAY)
    tenths = rest // 100
    shown = f"{tenths // 36000}:{tenths // 600 % 60:02}:{tenths // 10 % 60:02}.{tenths % 10}"
    return f"+{days}d {shown}" if days else f"+{shown}"


def kerf_command() -> str:
    """What to type to run this kerf again."""
    program = sys.argv[0]
    if Path(program).name != "kerf":
        return "kerf"
    installed = which("kerf")
    return "kerf" if installed is not None and Path(installed).absolute() == Path(program).absolute() else program


class LiveStory:
    """`tell` prints what a turn's entries say, without repetitions and details. Without a printer it prints nothing.
    `shapes` say what pods ask for. `before` is called before each line."""

    def __init__(
        self, out: Printer | None, start: int, shapes: Shapes, before: Callable[[], None] = lambda: None
    ) -> None:
        self.out, self.start, self._before = out, start, before
        self._timeline = Timeline(shapes)

    def tell(self, entries: Sequence[Entry]) -> None:
        events = [event for entry in entries for event in self._timeline.apply(entry)]
        for event in group_events([event for event in events if event.level != DEBUG]):
            self.line(event.at, event_sentence(event), event.level)

    def line(self, at: int, words: str, style: str = "info") -> None:
        """One line at a time (ms since the epoch)."""
        if self.out is not None:
            self._before()
            self.out.timed(elapsed_text(at - self.start), words, style)
