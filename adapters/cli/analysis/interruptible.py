"""Wait for work of DuckDB so that Ctrl-C, and the time limit of a hostile file, end it at once.

Signals reach Python's main thread only between two instructions of Python, and a query may take an hour in one. So the
query runs in a thread of its own.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")
_ENDS_WITHIN = 2.0  # seconds after it was told to
_LOOKED_EVERY = 0.05  # seconds


def interruptible(work: Callable[[], Answer], interrupt: Callable[[], object]) -> Answer:
    """Return what the work returns, or raise what it raises. A KeyboardInterrupt meanwhile interrupts it.

    What does not end even so is left alone: it is a daemon thread, and ends with the process.
    """
    answers: list[Answer] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=run, daemon=True, name="query")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOKED_EVERY)  # the signal may reach the other thread, and this one learn of it only here
    except KeyboardInterrupt:
        atexit.register(_say_no_more)
        interrupt()
        thread.join(_ENDS_WITHIN)
        raise
    if faults:
        raise faults[0]
    return answers[0]


def _say_no_more() -> None:
    """Let what DuckDB says at the end of the process, of what an interrupted query left behind, go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
