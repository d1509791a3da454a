"""Processes that work on parts of a record beside this one: as many as there are cores, or as `--jobs` says.

Each opens the record by itself, under the limits of the command (`limited`). They start with the first task, and end
with the command, also by Ctrl-C.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from multiprocessing import connection, parent_process
from typing import Any, TypeVar

from kerf.adapters.cli.garbage import look_rarely
from kerf.adapters.cli.limits import LIFTED, limited, share_done, share_told
from kerf.adapters.store.open import file_of, in_database, open_record
from kerf.engine.errors import KerfError
from kerf.engine.record.store import Store
from kerf.replay.workers import Task, Workers

T = TypeVar("T")
_LONGEST_END = 5.0  # seconds that a process takes that was told to end
_COPIED, _BEGUN = 0.5, 2.0  # seconds of CPU of work that is worth processes, by how they start


class WorkerDied(KerfError):
    """A worker process ended before its work was done: it was killed, or the system had no memory for it."""

    code = "KERF903"


@contextmanager
def workers_on(record: str, jobs: int) -> Iterator[Workers | None]:
    """Processes for a record; None where one is enough. Raises WorkerDied (KERF903)."""
    jobs = jobs or cores()
    if jobs == 1:
        yield None
        return
    processes = _Processes(record, jobs)
    try:
        yield processes
    except BrokenProcessPool as error:
        hint = "Give it more memory, or let one process do it with --jobs 1"
        raise WorkerDied("a worker process was killed", where=f"{jobs} processes", hint=hint) from error
    finally:
        processes.end()


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Processes:
    """They start as copies of this process, which has kerf imported and its caches filled. Where other threads may hold
    locks (the pool of a database), and off Linux, they start empty, which costs each a third of a second of CPU."""

    def __init__(self, record: str, jobs: int) -> None:
        self.jobs = jobs
        copied = sys.platform == "linux" and threading.active_count() == 1
        self.alone_for = _COPIED if copied else _BEGUN
        self._context = multiprocessing.get_context("fork" if copied else "spawn")
        self._begin = record, LIFTED.get()
        self._pool: ProcessPoolExecutor | None = None
        self._others = multiprocessing.active_children()

    def submit(self, task: Task[T]) -> Future[T]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.jobs, self._context, initializer=_begin, initargs=self._begin)
        with _ctrl_c_held_back():
            return self._pool.submit(_run, task, share_told())

    def end(self) -> None:
        """Ends the processes, whatever they are at. The record is closed by all of them then: the last reader of a
        SQLite file removes what readers leave beside it."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        ours = [process for process in multiprocessing.active_children() if process not in self._others]
        for process in ours:
            process.terminate()
        for process in ours:
            process.join(_LONGEST_END)


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Lets Ctrl-C wait until a process is started. It is held back in that process for good: Ctrl-C is for the command,
    which ends its workers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ── in a worker ────────────────────────────────────────────────────────────────────────────────────────────────────

_store: Store
_limits: Any


def _begin(record: str, lifted: bool) -> None:
    """Opens the record once for all tasks. What is limited is the time and memory of all of them."""
    global _store, _limits  # noqa: PLW0603 - a worker's process has one record
    look_rarely()
    threading.Thread(target=end_with_parent, daemon=True).start()
    LIFTED.set(lifted)
    _limits = nullcontext() if in_database(record) else limited(file_of(record), decides=True)
    _limits.__enter__()
    _store = open_record(record)


def end_with_parent() -> None:
    """Ends this process when its parent has been killed: nobody waits for it any more."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _run(task: Task[T], share: float) -> T:
    """`share`: what was done of the work when the task was given."""
    try:
        if share:
            share_done(share)
        return task.run(_store)
    except (KeyboardInterrupt, MemoryError) as error:
        _limits.__exit__(type(error), error, error.__traceback__)
        raise
