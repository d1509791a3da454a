"""Requests to the API server as client-go counts them (L-422), and the metrics that every exporter has of its
process."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from kerf.projections.metrics.families import COUNTER, HISTOGRAM, Family

SECONDS: tuple[float, ...] = tuple(round(0.001 * 1.5**power, 9) for power in range(20))
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
    r"(?:/namespaces/[^/]+(?=/[^/]+))?/(?P<kind>[^/?]+)(?:/(?P<name>[^/?]+)(?:/(?P<subresource>[^/?]+))?)?"
)
_VERBS = {"POST": "CREATE", "PUT": "UPDATE", "PATCH": "PATCH", "DELETE": "DELETE"}


class RequestMetrics:
    """Counts requests: `note` each answer of the API server."""

    def __init__(self) -> None:
        self._total = Family(
            "client_go_request_total", COUNTER, "Requests to the API server.", ("code", "method"),
        )  # fmt: skip
        self._took = Family(
            "client_go_request_duration_seconds", HISTOGRAM, "How long the API server took.",
            ("verb", "group", "version", "kind", "subresource"), SECONDS,
        )  # fmt: skip

    def families(self) -> list[Family]:
        return [self._total, self._took]

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """`status` is 0 for a request that had no answer. A watch counts when it begins."""
        self._total.inc(str(status) if status else "<error>", method)
        match = _PATH.match(path)
        if match is not None:
            verb = _VERBS.get(method) or ("GET" if match["name"] else "LIST")
            labels = (verb, match["group"] or "", match["version"], match["kind"], match["subresource"] or "")
            self._took.observe(seconds, *labels)


def process_text() -> bytes:
    """process_resident_memory_bytes, process_cpu_seconds_total and their like, as every exporter has them."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    return generate_latest(registry)
