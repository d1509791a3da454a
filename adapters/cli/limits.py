"""What a command that reads a record, or a log to import, may take: CPU time and memory, the more the larger the file.

A small file that takes minutes or gigabytes was made to do so. Large honest ones take their time for their size. Most
of it goes into deciding again, so whoever only reads gets less.
"""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from time import process_time
from types import FrameType

from kerf.adapters.store.files.bundle_format import MAGIC
from kerf.engine.errors import KerfError

NO_LIMITS = "--no-limits"
LIFTED: ContextVar[bool] = ContextVar("LIFTED", default=False)
"""Whether the user lifted the limits."""
SECONDS, TO_READ, TO_DECIDE = 20, 2.0, 15.0
"""CPU time for any file; and where that is more, for each megabyte that is only read, or whose turns are decided again.

Of kerf's own files the newcomer's day of `benchmarks/shipped.py` takes the most for its size: 24 s on a busy machine to
verify 335 kB of a bundle, and 21 s for each run of it in a model, where 62 s are allowed.
"""
MEGABYTES, TIMES_SIZE = 700, 20
"""Memory beyond what the process has, and that many times the file's size. It is limited on Linux alone."""
_COMPRESSED = 13  # bytes of a record for each of its bundle, or of a log for each of its packed file
_PACKED = (MAGIC, b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # a bundle, gzip, zstd
_SLOW_BEGINNING = 4  # times as slow as on the whole: a record may begin with a burst
_LONGEST_PART = 0.25  # of the time that is allowed: so long may pass until more of the work is done
_AGAIN = 1.0  # seconds until the time is looked at again, also should something have swallowed that it is over
_TICK = 0.02  # seconds by which a timer may come early
_MEGABYTE = 1 << 20


class LimitReached(KerfError):
    """A file took more CPU time or memory than one of its size may."""

    code = "KERF128"


@contextmanager
def limited(*places: Path, decides: bool = False) -> Iterator[None]:
    """Limits what is done within to what these files together may take, if nobody lifted the limits. `decides`: turns
    are decided again, or run in a model. Raises LimitReached (KERF128).

    What is over time ends as by Ctrl-C, which nothing in kerf holds up, also a statement of SQLite.
    """
    if LIFTED.get() or threading.current_thread() is not threading.main_thread():
        yield
        return
    megabytes = allowed_memory(places)
    time = _Time(allowed_seconds(places, decides=decides))
    before = signal.signal(signal.SIGPROF, time.passes)
    token = _UNDER_WAY.set(time)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS, _AGAIN)
        with memory_limited(megabytes, data_in_use()):
            yield
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if time.over is None:
            raise
        raise _reached(f"{time.over:,.0f} s of CPU time", places) from None
    except MemoryError:
        raise _reached(f"{megabytes:,.0f} MB of memory", places) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        _UNDER_WAY.reset(token)


def allowed_seconds(places: Iterable[Path], *, decides: bool) -> float:
    """Returns how much CPU time these files may take together."""
    return max(SECONDS, (TO_DECIDE if decides else TO_READ) * _megabytes(places))


def share_done(share: float) -> None:
    """Tells how much of the work is done. After the time that any file has, the work must go on, and may not be far too
    slow to end within what the file's size allows.
    """
    if (time := _UNDER_WAY.get()) is not None:
        time.told(share)


def share_told() -> float:
    """How much of the work is done; 0 if nobody told."""
    time = _UNDER_WAY.get()
    return time.share if time is not None else 0.0


def allowed_memory(places: Iterable[Path]) -> float:
    """Returns how many megabytes these files may take together, beyond what the process has."""
    return MEGABYTES + TIMES_SIZE * _megabytes(places)


def data_in_use() -> int | None:
    """Returns the bytes of memory that the process has now, of those that can be limited; None where nobody knows."""
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmData:")[2].split()[0]) << 10
    return None


@contextmanager
def memory_limited(megabytes: float, beyond: int | None) -> Iterator[None]:
    """Limits the process to so many megabytes more than the bytes `beyond` (`data_in_use`). Does nothing for None, and
    where that cannot be set."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = None if beyond is None else beyond + int(megabytes * _MEGABYTE)
    try:
        if limit is not None and (soft == resource.RLIM_INFINITY or limit < soft):
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class _Time:
    """CPU time that is allowed for some work. `share`: what is done of it. `over`: the seconds after which it
    was ended."""

    def __init__(self, allowed: float) -> None:
        self._began, self._allowed = process_time(), allowed
        self.share, self._told = 0.0, 0.0
        self.over: float | None = None

    def told(self, share: float) -> None:
        self.share, self._told = share, process_time()

    def passes(self, _signal: int, _frame: FrameType | None) -> None:
        now = process_time()
        took = now - self._began
        slow = took > self.share * self._allowed * _SLOW_BEGINNING
        stuck = now - self._told > max(SECONDS, self._allowed * _LONGEST_PART)
        if self.over is None and took < self._allowed - _TICK and not (self._told and (slow or stuck)):
            return
        self.over = min(took, self._allowed) if self.over is None else self.over
        raise KeyboardInterrupt


_UNDER_WAY: ContextVar[_Time | None] = ContextVar("_UNDER_WAY", default=None)


def _megabytes(places: Iterable[Path]) -> float:
    size = 0
    for place in places:
        with suppress(OSError):  # whoever opens it says what is wrong
            size += _size(place)
    return size / _MEGABYTE


def _size(place: Path) -> int:
    """Returns how many bytes a record has: its file with SQLite's log, all files of a folder, or what a bundle or a
    packed file may stand for.
    """
    files = place.iterdir() if place.is_dir() else (place, Path(f"{place}-wal"))
    size = sum(file.stat().st_size for file in files if file.is_file())
    if place.is_file():
        with place.open("rb") as file:
            return size * (_COMPRESSED if file.read(len(MAGIC)).startswith(_PACKED) else 1)
    return size


def _reached(what: str, places: Iterable[Path]) -> LimitReached:
    told = f"a file of this size may not take more than {what}"
    return LimitReached(told, where=", ".join(map(str, places)), hint=f"If you trust whoever made it, add {NO_LIMITS}")
