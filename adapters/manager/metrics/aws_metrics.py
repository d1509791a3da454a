"""Calls to AWS as the SDK of Karpenter counts them (L-433), and how long the methods of its port take (L-413)."""

from __future__ import annotations

import threading
from copy import deepcopy

from kerf.adapters.aws.call_listener import CallListener
from kerf.projections.metrics.counter_definitions import PREFIX
from kerf.projections.metrics.families import CLIENT_DEFAULTS, COUNTER, HISTOGRAM, Family

SECONDS: tuple[float, ...] = tuple(round(0.01 * 1.5**power, 9) for power in range(20))
RETRIES: tuple[float, ...] = tuple(float(count) for count in range(11))
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
        self._lock = threading.Lock()

    def families(self) -> list[Family]:
        """Copies, which do not change while they are read."""
        with self._lock:
            return deepcopy([self._total, self._took, self._retries, self._attempts, self._answered, self._methods])

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
