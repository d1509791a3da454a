"""Lets threads, which carry out effects, call the connection, which belongs to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Bridge:
    """Runs coroutines on one loop for callers in other threads: the ports of the engine are synchronous."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result, or what it raises. Never called from the loop's own thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
