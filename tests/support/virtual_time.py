"""An event loop whose time is virtual: a test that waits an hour takes no time, and its timeouts mean what they say."""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any


class _Selector(selectors.DefaultSelector):
    """Waits for the loop: by moving its clock, or in real time while something from outside may come."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.jobs = 0  # in other threads

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            return super().select(None)
        if self.jobs and timeout > 0:
            begun = time.monotonic()
            events = super().select(timeout)
            self.now += time.monotonic() - begun
            return events
        events = super().select(0)
        if not events:
            self.now += max(0.0, timeout)
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """When nothing is ready, the clock moves on to the next timer at once.

    While a job runs in another thread (`asyncio.to_thread`), time is real: nobody can say how long it takes. For the
    same reason no socket may be used: what comes from one would always come too late.
    """

    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        return self._waits.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        self._waits.jobs += 1
        job = super().run_in_executor(executor, func, *args)
        job.add_done_callback(self._job_done)
        return job

    def _job_done(self, _: Any) -> None:
        self._waits.jobs -= 1
