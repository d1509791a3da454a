"""What ends a node or keeps it, on a real API server: drift, expiration, PodDisruptionBudgets; and missing rights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.engine.record.claim_events import Tainted
from kerf.engine.record.observations import EffectAnswered
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
    deployment,
    eventually,
    is_true,
    node_claims,
    node_class,
    node_pool,
    recorded,
    running_pods,
)

POOLS = "/apis/karpenter.sh/v1/nodepools"
MERGE = "application/merge-patch+json"
ANY_TIME = {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}
pytestmark = pytest.mark.slow


def names(plane: ControlPlane) -> set[str]:
    return {claim["metadata"]["name"] for claim in node_claims(plane)}


def of(plane: ControlPlane, name: str) -> list[dict[str, Any]]:
    return [pod for pod in running_pods(plane) if pod["metadata"]["labels"]["app"] == name]


def in_service(plane: ControlPlane, kerf: Kerf, name: str, replicas: int) -> set[str]:
    """Its pods run, and every claim is ready."""
    eventually(lambda: len(of(plane, name)) == replicas, kerf=kerf)
    eventually(lambda: all(is_true(node_claim, "Ready") for node_claim in node_claims(plane)), kerf=kerf)
    return names(plane)


def why(kerf: Kerf) -> set[str]:
    return {payload.why for payload in recorded(kerf.record) if isinstance(payload, Tainted)}


def budget(name: str, least: int) -> dict[str, Any]:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def test_a_budget_of_pods_is_kept_while_a_node_drains(plane: ControlPlane, kerf: Kerf) -> None:
    """Evictions that a PodDisruptionBudget refuses with 429 are tried again until it lets them (D-148)."""
    plane.apply(node_class())
    plane.apply(node_pool(disruption=ANY_TIME))
    plane.apply(deployment("kept", 2, "900m"))
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    status, said = plane.request("POST", budgets, budget("kept", 2))
    assert status == 201, said
    kerf.start()
    before = in_service(plane, kerf, "kept", 2)
    for name in before:
        plane.request("DELETE", f"/apis/karpenter.sh/v1/nodeclaims/{name}")
    eventually(
        lambda: [p for p in recorded(kerf.record) if isinstance(p, EffectAnswered) and p.code == "429"], kerf=kerf
    )
    assert len(of(plane, "kept")) == 2
    assert plane.request("PATCH", f"{budgets}/kept", {"spec": {"minAvailable": 0}}, MERGE)[0] == 200
    eventually(lambda: not before & names(plane), kerf=kerf)
    in_service(plane, kerf, "kept", 2)
    assert kerf.stop() == 0
    assert why(kerf) == {"deleted"}
    assert "same" in kerf.verify()


def test_a_pools_new_template_replaces_its_nodes(plane: ControlPlane, kerf: Kerf) -> None:
    """Drift (D-62 to D-65): the replacement is in service before the old node drains (D-116)."""
    kerf.start()
    before = in_service(plane, kerf, "kept", 2)
    label = {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}}
    assert plane.request("PATCH", f"{POOLS}/default", label, MERGE)[0] == 200
    eventually(lambda: not before & names(plane), kerf=kerf, seconds=120)
    in_service(plane, kerf, "kept", 2)
    assert all(node["metadata"]["labels"].get("team") == "blue" for node in plane.items("/api/v1/nodes"))
    assert kerf.stop() == 0
    assert why(kerf) == {"drifted"}
    assert "same" in kerf.verify()


def test_an_expired_node_goes_and_its_pods_find_another(plane: ControlPlane, kerf: Kerf) -> None:
    """D-131: at creation + expireAfter, whatever the budgets say."""
    plane.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/kept")
    plane.request("DELETE", f"{POOLS}/default")
    kerf.start()
    eventually(lambda: not node_claims(plane), kerf=kerf)
    short = node_pool("short", disruption={"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]})
    short["spec"]["template"]["spec"]["expireAfter"] = "25s"
    plane.apply(short)
    plane.apply(deployment("moved", 2, "900m"))
    eventually(lambda: len(of(plane, "moved")) == 2, kerf=kerf)
    first = names(plane)
    eventually(lambda: not first & names(plane), kerf=kerf, seconds=90)
    eventually(lambda: len(of(plane, "moved")) == 2, kerf=kerf)
    assert kerf.stop() == 0
    assert "expired" in why(kerf)
    assert "same" in kerf.verify()


def test_without_the_right_to_list_pods_it_says_so_waits_and_goes_on_when_it_may(
    plane: ControlPlane, kerf: Kerf, tmp_path: Path
) -> None:
    """KERF601, not ready, and no end."""
    rbac = "rbac.authorization.k8s.io/v1"
    meta = {"name": "kerf-poor", "namespace": "default"}
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    some = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}]
    every = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    role = {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "kerf-poor"}, "rules": some}
    binding = {
        "apiVersion": rbac,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kerf-poor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kerf-poor"},
        "subjects": [{"kind": "ServiceAccount", **meta}],
    }
    assert plane.request("POST", f"/apis/{rbac}/clusterroles", role)[0] == 201
    assert plane.request("POST", f"/apis/{rbac}/clusterrolebindings", binding)[0] == 201
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = plane.request("POST", "/api/v1/namespaces/default/serviceaccounts/kerf-poor/token", asked)[1]
    settings = json.loads(plane.kubeconfig.read_text())
    settings["users"][0]["user"]["token"] = token["status"]["token"]
    kerf.kubeconfig = tmp_path / "poor"
    kerf.kubeconfig.write_text(json.dumps(settings))
    plane.apply(deployment("poor", 1, "900m"))
    kerf.start()
    eventually(kerf.record.exists, kerf=kerf)
    assert not of(plane, "poor")
    assert plane.request("PATCH", f"/apis/{rbac}/clusterroles/kerf-poor", {"rules": every}, MERGE)[0] == 200
    eventually(lambda: len(of(plane, "poor")) == 1, kerf=kerf, seconds=90)
    assert kerf.stop() == 0
    assert "same" in kerf.verify()
