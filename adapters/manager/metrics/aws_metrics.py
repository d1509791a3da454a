"""Calls to AWS as the SDK of Karpenter counts them (L-433), how long the methods of its port take (L-413), what goes
out in one call (L-428), and the messages of the interruption queue (L-429, L-430)."""

from __future__ import annotations

import threading
from copy import deepcopy

from kerf.adapters.aws.call_listener import CallListener
from kerf.projections.metrics.counter_definitions import PREFIX
from kerf.projections.metrics.families import CLIENT_DEFAULTS, COUNTER, DURATIONS, HISTOGRAM, Family

SECONDS: tuple[float, ...] = tuple(round(0.01 * 1.5**power, 9) for power in range(20))
RETRIES: tuple[float, ...] = tuple(float(count) for count in range(11))
SIZES: tuple[float, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_CALL = ("service", "action", "code")


class AwsMetrics(CallListener):
    """Counts what it is told. Calls are made on many threads."""

    def __init__(self) -> None:
        name = "aws_sdk_go_request"
        self._total = Family(f"{name}_total", COUNTER, "Calls to AWS.", _CALL)
        self._took = Family(
            f"{name}_duration_seconds", HISTOGRAM, "How long calls to AWS took, with waiting and retries.", _CALL,
            SECONDS,
        )  # fmt: skip
        self._retries = Family(f"{name}_retry_count", HISTOGRAM, "How often a call was sent again.", _CALL, RETRIES)
        self._attempts = Family(f"{name}_attempt_total", COUNTER, "Requests sent to AWS.", _CALL)
        self._answered = Family(
            f"{name}_attempt_duration_seconds", HISTOGRAM, "How long AWS took for a request.", _CALL, SECONDS
        )
        self._methods = Family(
            PREFIX + "cloudprovider_duration_seconds", HISTOGRAM, "How long the cloud took for what was asked of it.",
            ("controller", "method", "provider"), CLIENT_DEFAULTS,
        )  # fmt: skip
        batch = PREFIX + "cloudprovider_batcher_batch"
        self._waited = Family(
            f"{batch}_time_seconds", HISTOGRAM, "How long the first of a batch waited.", ("batcher",), DURATIONS
        )
        self._sizes = Family(f"{batch}_size", HISTOGRAM, "How many went out in one call.", ("batcher",), SIZES)
        messages = PREFIX + "interruption"
        self._messages = Family(
            f"{messages}_received_messages_total", COUNTER, "Interruption messages.", ("message_type",)
        )
        self._ages = Family(
            f"{messages}_message_queue_duration_seconds", HISTOGRAM, "The age of interruption messages.", (), DURATIONS
        )
        self._lock = threading.Lock()

    def families(self) -> list[Family]:
        """Copies, which do not change while they are read."""
        with self._lock:
            calls = [self._total, self._took, self._retries, self._attempts, self._answered]
            return deepcopy([*calls, self._methods, self._waited, self._sizes, self._messages, self._ages])

    def attempted(self, service: str, action: str, status: int, seconds: float) -> None:
        labels = service, action, str(status)
        with self._lock:
            self._attempts.inc(*labels)
            self._answered.observe(seconds, *labels)

    def called(self, service: str, action: str, status: int, seconds: float, retries: int) -> None:
        labels = service, action, str(status)
        with self._lock:
            self._total.inc(*labels)
            self._took.observe(seconds, *labels)
            self._retries.observe(retries, *labels)

    def answered(self, controller: str, method: str, seconds: float) -> None:
        with self._lock:
            self._methods.observe(seconds, controller, method, "aws")

    def batched(self, batcher: str, seconds: float, size: int) -> None:
        with self._lock:
            self._waited.observe(seconds, batcher)
            self._sizes.observe(size, batcher)

    def received(self, kind: str) -> None:
        with self._lock:
            self._messages.inc(kind)

    def handled(self, seconds: float) -> None:
        with self._lock:
            self._ages.observe(seconds)
