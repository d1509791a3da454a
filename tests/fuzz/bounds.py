"""Bounds on what one example may take: CPU time and memory of this process."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

MOST_SECONDS = 20
MOST_MEMORY = 1_000_000_000
"""Bytes beyond those that the process has at the beginning."""


class TooSlow(BaseException):
    """An example took more CPU time than it may. No code under test catches it."""


@contextmanager
def bounded(seconds: float = MOST_SECONDS, memory: int = MOST_MEMORY) -> Iterator[None]:
    """Raises TooSlow after so many seconds of CPU time, and MemoryError beyond so many bytes."""

    def too_slow(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds} s of CPU time")

    before = signal.signal(signal.SIGPROF, too_slow)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _data() + memory
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def _data() -> int:
    """Returns the bytes of private memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    return pages * resource.getpagesize()
