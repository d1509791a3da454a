"""Lets threads, which carry out effects, call the connection, which belongs to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Bridge:
    """Runs coroutines on one loop for callers in other threads, because the engine's ports are synchronous."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine and returns its result, or raises what it raises. Never call it from the loop's own
        thread.
        """
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
