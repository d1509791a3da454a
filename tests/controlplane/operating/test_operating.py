"""kerf as its operators see it: probes, metrics, events, and its record while it runs (L-299, L-340, L-382)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane.operated import Operated, get
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    deployment,
    eventually,
    node_claims,
    node_class,
    node_pool,
    running_pods,
)


@pytest.fixture
def operated(plane: ControlPlane, tmp_path: Path) -> Iterator[Operated]:
    process = Operated(plane, tmp_path, "--leader-election-name", "operated")
    try:
        yield process
    finally:
        if process.running:
            process.kill()


def test_probes_and_metrics_tell_the_truth(plane: ControlPlane, operated: Operated) -> None:
    """L-340: alive as soon as it answers, ready when it sees the cluster, not ready when it cannot."""
    plane.apply(node_class())
    plane.apply(node_pool())
    operated.start()
    eventually(lambda: get(operated.health, "/healthz")[0] == 200, kerf=operated)
    eventually(operated.ready, kerf=operated)
    plane.apply(deployment("measured", 3, "1"))
    eventually(lambda: len(running_pods(plane)) == 3, kerf=operated)

    def told() -> str:
        status, text = get(operated.metrics, "/metrics")
        assert status == 200
        wanted = (
            'karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="default",reason="provisioned"}',
            'karpenter_nodes_created_total{nodepool="default"',
            "karpenter_cluster_state_synced 1.0",
            'operator_nodepool_status_condition_count{name="default",namespace="",reason="Ready",status="True"',
        )
        return text if all(word in text for word in wanted) else ""

    text = eventually(told, kerf=operated)
    assert "karpenter_pods_state{" in text

    plane.stop_process("kube-apiserver", signal.SIGKILL)
    eventually(lambda: get(operated.health, "/readyz")[0] == 503, seconds=9)
    assert "KERF602" in get(operated.health, "/readyz")[1]
    assert get(operated.health, "/healthz")[0] == 200
    plane.start_api_server()
    eventually(operated.ready, seconds=90, kerf=operated)


def test_the_objects_of_a_scale_out_have_their_events(plane: ControlPlane, operated: Operated) -> None:
    """L-436, L-437, L-459: on pods and NodeClaims, from the component `karpenter`, found by uid as kubectl does."""
    operated.start()
    eventually(operated.ready, kerf=operated)
    plane.apply(deployment("told", 2, "3"))
    plane.apply(deployment("hopeless", 1, "4000"))

    def events() -> dict[tuple[str, str], dict[str, Any]]:
        found = plane.items("/api/v1/namespaces/default/events")
        own = [event for event in found if event["source"].get("component") == "karpenter"]
        return {(event["involvedObject"]["kind"], event["reason"]): event for event in own}

    wanted = {
        ("Pod", "Nominated"),
        ("NodeClaim", "Launched"),
        ("NodeClaim", "Initialized"),
        ("Pod", "FailedScheduling"),
    }
    eventually(lambda: wanted <= events().keys(), kerf=operated)
    refused = events()["Pod", "FailedScheduling"]
    assert refused["type"] == "Warning"
    assert "cpu" in refused["message"]
    claim = events()["NodeClaim", "Launched"]["involvedObject"]
    there = {node_claim["metadata"]["name"]: node_claim["metadata"]["uid"] for node_claim in node_claims(plane)}
    assert claim["uid"] == there[claim["name"]]
