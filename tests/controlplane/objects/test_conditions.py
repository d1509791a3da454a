"""The conditions of NodeClaim objects on a real API server, as `kubectl wait` and Karpenter's own tests see them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import Kerf, deployment, eventually, is_true, node_claims, node_class, node_pool

pytestmark = pytest.mark.slow


def _quiet_after_its_pod_came(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """On a loaded machine a new node is quiet for consolidateAfter before its pod comes: that is not waited for."""
    return [claim for claim in claims if is_true(claim, "Consolidatable") and claim["status"].get("lastPodEventTime")]


def test_a_claim_is_consolidatable_once_its_pods_have_been_quiet(plane: ControlPlane, kerf: Kerf) -> None:
    """C-1, D-55: it comes with time alone, and goes when a pod comes."""
    plane.apply(node_class())
    plane.apply(node_pool(disruption={"consolidateAfter": "3s", "budgets": [{"nodes": "0"}]}))
    plane.apply(deployment("quiet", 1, "100m"))
    kerf.start()
    (claim,) = eventually(lambda: _quiet_after_its_pod_came(node_claims(plane)), kerf=kerf)
    told = {condition["type"]: condition for condition in claim["status"]["conditions"]}
    assert set(told) == {"Launched", "Registered", "Initialized", "Ready", "Consolidatable", "ConsistentStateFound"}
    assert {condition["status"] for condition in told.values()} == {"True"}
    pool = "/apis/karpenter.sh/v1/nodepools/default"
    patch = {"spec": {"disruption": {"consolidateAfter": "Never"}}}
    assert plane.request("PATCH", pool, patch, "application/merge-patch+json")[0] == 200
    eventually(lambda: not any(is_true(node_claim, "Consolidatable") for node_claim in node_claims(plane)), kerf=kerf)
