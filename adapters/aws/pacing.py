"""Keeps requests to EC2 within the rates that EC2 documents, so that a burst waits here instead of being refused.

EC2 has a bucket of tokens for each operation of an account in a region ("Request throttling for the Amazon EC2 API").
The account may have others that use it: when EC2 refuses a request all the same, the bucket here counts as empty.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

READING, CHANGING = (100, 20.0), (50, 5.0)
"""Tokens that a bucket holds, and how many come back in a second, for operations without a bucket size of their own."""
OWN: dict[str, tuple[int, float]] = {
    "CreateTags": (100, 10.0),
    "TerminateInstances": (100, 5.0),
    "RunInstances": (5, 2.0),
}
TERMINATED = (1_000, 20.0)
"""TerminateInstances also takes a token of another bucket for each instance."""
_REFUSED = "RequestLimitExceeded"


class _Bucket(Struct):
    size: int
    rate: float
    left: float
    at: float

    def take(self, now: float, tokens: int) -> float:
        """The seconds to wait for so many tokens. They are taken in any case: who comes next waits longer."""
        self.left = min(float(self.size), self.left + (now - self.at) * self.rate) - tokens
        self.at = now
        return max(0.0, -self.left / self.rate)

    def empty(self, now: float) -> None:
        self.left, self.at = min(0.0, self.left), now


class Pace:
    """The buckets of one region; safe for threads. `clock` and `sleep` are in seconds."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._buckets: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def hold(self, client: Any) -> None:
        """Let the requests of an EC2 client wait for their turn, the SDK's own repetitions as well."""
        events = client.meta.events
        events.register_first("before-send.ec2", self._before)
        events.register("provide-client-params.ec2.TerminateInstances", self._instances)
        events.register("response-received.ec2", self._answered)

    def wait(self, bucket: str, limits: tuple[int, float], tokens: int = 1) -> None:
        """Take tokens of a bucket, and sleep until there are so many."""
        with self._lock:
            seconds = self._of(bucket, limits).take(self._clock(), tokens)
        if seconds:
            self._sleep(seconds)

    def _of(self, name: str, limits: tuple[int, float]) -> _Bucket:
        if name not in self._buckets:
            self._buckets[name] = _Bucket(*limits, float(limits[0]), self._clock())
        return self._buckets[name]

    def _before(self, event_name: str, **_: Any) -> None:
        operation = event_name.rpartition(".")[2]
        self.wait(operation, _limits(operation))

    def _instances(self, params: dict[str, Any], **_: Any) -> None:
        self.wait("instances to terminate", TERMINATED, len(params.get("InstanceIds", ())))

    def _answered(self, event_name: str, parsed_response: dict[str, Any] | None, **_: Any) -> None:
        operation = event_name.rpartition(".")[2]
        if parsed_response and parsed_response.get("Error", {}).get("Code") == _REFUSED:
            with self._lock:
                self._of(operation, _limits(operation)).empty(self._clock())


def _limits(operation: str) -> tuple[int, float]:
    reading = operation.startswith(("Describe", "Get", "List"))
    return OWN.get(operation, READING if reading else CHANGING)
