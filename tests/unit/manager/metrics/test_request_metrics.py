"""Requests to the API server, as client-go tells them (L-422)."""

from __future__ import annotations

import pytest

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.adapters.manager.metrics.request_metrics import RequestMetrics, process_text
from tests.support.metrics import scraped, value

SECONDS = "client_go_request_duration_seconds"


@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        ("GET", "/api/v1/pods", ("LIST", "", "v1", "pods", "")),
        ("GET", "/api/v1/namespaces/default", ("GET", "", "v1", "namespaces", "")),
        ("POST", "/api/v1/namespaces/x/pods/y/eviction", ("CREATE", "", "v1", "pods", "eviction")),
        ("PATCH", "/apis/karpenter.sh/v1/nodeclaims/a/status", ("PATCH", "karpenter.sh", "v1", "nodeclaims", "status")),
        (
            "PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter",
            ("UPDATE", "coordination.k8s.io", "v1", "leases", ""),
        ),
    ],
)  # fmt: skip
def test_a_request_counts_for_what_it_asks(method: str, path: str, labels: tuple[str, ...]) -> None:
    metrics = RequestMetrics()
    metrics.note(method, path, 200, 0.002)
    found = scraped(exposition(metrics.families()))
    named = dict(zip(("verb", "group", "version", "kind", "subresource"), labels, strict=True))
    assert value(found, f"{SECONDS}_count", **named) == 1
    assert value(found, "client_go_request_total", code="200", method=method) == 1


def test_a_request_without_an_answer_is_an_error_and_a_path_of_no_kind_is_only_counted() -> None:
    metrics = RequestMetrics()
    metrics.note("GET", "/version", 0, 30.0)
    found = scraped(exposition(metrics.families()))
    assert value(found, "client_go_request_total", code="<error>", method="GET") == 1
    assert SECONDS + "_count" not in found


def test_the_process_tells_its_memory() -> None:
    assert value(scraped(process_text()), "process_resident_memory_bytes") > 1 << 20
