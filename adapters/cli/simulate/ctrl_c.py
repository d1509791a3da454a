"""Ctrl-C as a question that is asked between turns: an exception amid a turn could leave half of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kerf.adapters.cli.render.lines import print_error


@contextmanager
def ctrl_c() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed since. Pressed again, it ends the process at once, as ever."""
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        print_error("\nThe simulation ends with this turn. Ctrl-C again ends it at once, without a record.")
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread hears signals
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
