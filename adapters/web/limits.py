"""What one question to the explorer may take of a stranger's record: as much CPU time and memory as a command.

`limited` is for a process that ends with its command. A server goes on: it ends the question. Questions run in a thread
of their own, so a second thread looks at the CPU time that the first one has used.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kerf.adapters.cli.limits import (
    LIFTED,
    NO_LIMITS,
    LimitReached,
    allowed_memory,
    allowed_seconds,
    data_in_use,
    memory_limited,
)
from kerf.adapters.store.open import file_of, in_database

LOOKED_EVERY = 0.25  # seconds
_AGAIN = 1.0  # seconds of CPU time until a question is ended again, should something have swallowed that it is over
Clock = Callable[[], float]


class _Running(Struct):
    """The question that a thread answers: the clock of its CPU time, and the time by it at which it is over."""

    thread: int
    clock: Clock
    ends: float


class QuestionLimits:
    """Limits questions that one thread answers one after the other to what a record in `places` may take, by its size
    at that time. Without places nothing is limited."""

    def __init__(self, places: Sequence[Path] = (), every: float = LOOKED_EVERY) -> None:
        self._places, self._every, self._data = places, every, data_in_use()
        self._lock, self._ends = threading.Lock(), threading.Event()
        self._running: _Running | None = None
        self._told = False  # that it is over
        if places:
            threading.Thread(target=self._watch, name="explorer-limits", daemon=True).start()

    def close(self) -> None:
        self._ends.set()

    def seconds(self) -> float:
        """Return how much CPU time may go into a question."""
        return allowed_seconds(self._places, decides=True) if self._places else float("inf")

    @contextmanager
    def question(self, *, memory: bool = True) -> Iterator[None]:
        """Limit what is done within by this thread. `memory` is that of the process: one thread at a time may limit it.
        Raises LimitReached (KERF128)."""
        if not self._places:
            yield
            return
        clock, allowed, megabytes = _cpu_clock(), self.seconds(), allowed_memory(self._places)
        self._told, self._running = False, _Running(threading.get_ident(), clock, clock() + allowed)
        try:
            try:
                with memory_limited(megabytes, self._data if memory else None):
                    yield
            finally:
                self._over()
        except KeyboardInterrupt:
            if not self._told:
                raise
            raise _reached(f"{allowed:,.0f} s of CPU time") from None
        except MemoryError:
            raise _reached(f"{megabytes:,.0f} MB of memory") from None

    def renew(self) -> None:
        """Begin with the next one of many answers that a question gives: each may take as much."""
        with self._lock:
            if self._running is not None and not self._told:
                self._running.ends = self._running.clock() + self.seconds()

    def _over(self) -> None:
        """Make sure that nothing that comes later is ended for this question."""
        with self._lock:
            if self._told and self._running is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._running.thread), None)
            self._running = None

    def _watch(self) -> None:
        """End what is over time, as Ctrl-C would: nothing in kerf holds that up, also no statement of SQLite."""
        while not self._ends.wait(self._every):
            with self._lock:
                running = self._running
                if running is not None and running.clock() > running.ends:
                    self._told, running.ends = True, running.clock() + _AGAIN
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(running.thread), ctypes.py_object(KeyboardInterrupt)
                    )


def limits_of(record: str) -> QuestionLimits:
    """Return the limits of questions about a record: none for a database, which is kerf's own, and where the user
    lifted them."""
    return QuestionLimits(() if LIFTED.get() or in_database(record) else (file_of(record),))


def _reached(what: str) -> LimitReached:
    told = f"an answer about a record of this size may not take more than {what}"
    return LimitReached(told, hint=f"If you trust whoever made it, start kerf ui with {NO_LIMITS}")


def _cpu_clock() -> Clock:
    """Return a clock of this thread's CPU time that other threads can read; of all time where there is none."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    number = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(number)
