"""The port for processes that work on parts of a record. The command line implements it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol, TypeVar

from kerf.engine.record.store import Store

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Task(Protocol[T_co]):
    """Work on a record that another process may do: it and its result can be pickled."""

    def run(self, store: Store) -> T_co: ...


class Workers(Protocol):
    """Processes that each have the record open. They start with the first task."""

    @property
    def jobs(self) -> int:
        """How many tasks run at once."""
        ...

    @property
    def alone_for(self) -> float:
        """Seconds of CPU of work that one process does sooner alone, since the others have to start."""
        ...

    def submit(self, task: Task[T]) -> Future[T]:
        """Begin a task, or let it wait for its turn. Its result raises what the task raises."""
        ...
