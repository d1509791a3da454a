"""The token bucket in front of all requests, as in client-go: a rate on average, with bursts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class TokenBucket:
    """Gives one token per `wait`, in the order of the calls: `qps` each second, and `burst` at once after a
    quiet time.
    """

    def __init__(self, qps: float, burst: int, clock: Callable[[], float]) -> None:
        self._qps, self._burst, self._clock = qps, burst, clock
        self._tokens, self._at = float(burst), clock()

    def reserve(self) -> float:
        """Takes a token and returns after how many seconds it may be used."""
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._qps) - 1
        self._at = now
        return max(0.0, -self._tokens / self._qps)

    async def wait(self) -> None:
        delay = self.reserve()
        if delay:
            await asyncio.sleep(delay)
