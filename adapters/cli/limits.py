"""What a command that reads a record may take: CPU time and memory, the more the larger the file is.

A small file that takes minutes or gigabytes was made to do so. Large honest ones take their time for their size.
"""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

from kerf.adapters.store.files.bundle_format import MAGIC
from kerf.engine.errors import KerfError

NO_LIMITS = "--no-limits"
LIFTED: ContextVar[bool] = ContextVar("LIFTED", default=False)
"""Whether the user lifted the limits."""
SECONDS, SECONDS_PER_MEGABYTE = 10, 30
"""CPU time for a file of no size, and for each megabyte. To verify a day's record of 4.5 MB took 87 s at most."""
MEGABYTES, TIMES_SIZE = 700, 20
"""Memory beyond what the process has, and that many times the file's size. It is limited on Linux alone."""
_COMPRESSED = 13  # bytes of a record for each of its bundle
_AGAIN = 1.0  # seconds after which the time that is over is told again, should something have swallowed it
_MEGABYTE = 1 << 20


class LimitReached(KerfError):
    """A file took more CPU time or memory than one of its size may."""

    code = "KERF128"


@contextmanager
def limited(place: Path) -> Iterator[None]:
    """Limits what is done within, if nobody lifted the limits. Raises LimitReached (KERF128).

    What is over time ends as by Ctrl-C, which nothing in kerf holds up, also a statement of SQLite.
    """
    if LIFTED.get() or threading.current_thread() is not threading.main_thread():
        yield
        return
    size = 0.0
    with suppress(OSError):  # whoever opens it says what is wrong
        size = _size(place) / _MEGABYTE
    seconds, megabytes = SECONDS + SECONDS_PER_MEGABYTE * size, MEGABYTES + TIMES_SIZE * size
    timer = _Timer()
    before = signal.signal(signal.SIGPROF, timer.end)
    data = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
        _limit_memory(int(megabytes * _MEGABYTE), data)
        yield
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if not timer.over:
            raise
        raise _reached(f"{seconds:,.0f} s of CPU time", place) from None
    except MemoryError:
        raise _reached(f"{megabytes:,.0f} MB of memory", place) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_DATA, data)


class _Timer:
    over = False

    def end(self, _signal: int, _frame: FrameType | None) -> None:
        self.over = True
        raise KeyboardInterrupt


def _limit_memory(more: int, data: tuple[int, int]) -> None:
    """Limits the process to what it has and so many bytes more. Does nothing where that cannot be known or set."""
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        limit = (int(status.partition("VmData:")[2].split()[0]) << 10) + more
        soft, hard = data
        if soft == resource.RLIM_INFINITY or limit < soft:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _size(place: Path) -> int:
    """Returns how many bytes a record has: its file with SQLite's log, all files of a folder, or what a bundle may
    stand for.
    """
    files = place.iterdir() if place.is_dir() else (place, Path(f"{place}-wal"))
    size = sum(file.stat().st_size for file in files if file.is_file())
    if place.is_file():
        with place.open("rb") as file:
            return size * (_COMPRESSED if file.read(len(MAGIC)) == MAGIC else 1)
    return size


def _reached(what: str, place: Path) -> LimitReached:
    told = f"a file of this size may not take more than {what}"
    return LimitReached(told, where=str(place), hint=f"If you trust whoever made it, add {NO_LIMITS}")
