"""From pending pods to running ones, on a real control plane with KWOK nodes, and back to nothing."""

from __future__ import annotations

import pytest

from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
    deployment,
    eventually,
    is_true,
    node_claims,
    node_class,
    node_pool,
    running_pods,
)

POOLS = "/apis/karpenter.sh/v1/nodepools"
pytestmark = pytest.mark.slow


def test_pods_get_nodes_and_the_pool_takes_them_along_when_it_goes(plane: ControlPlane, kerf: Kerf) -> None:
    """L-139 to L-176, L-188 to L-201, L-256, L-466 to L-476; and the record verifies."""
    for document in (node_class(), node_pool(), deployment("a", 20, "500m"), deployment("b", 10, "1500m")):
        plane.apply(document)
    kerf.start()
    eventually(lambda: len(running_pods(plane)) == 30, kerf=kerf)
    eventually(lambda: all(is_true(node_claim, "Ready") for node_claim in node_claims(plane)), kerf=kerf)
    claims = node_claims(plane)
    nodes = {node["spec"]["providerID"]: node for node in plane.items("/api/v1/nodes")}
    for claim in claims:
        node = nodes[claim["status"]["providerID"]]
        metadata = node["metadata"]
        assert metadata["labels"]["karpenter.sh/registered"] == "true"
        assert metadata["labels"]["karpenter.sh/initialized"] == "true"
        assert metadata["finalizers"] == ["karpenter.sh/termination"]
        assert [(o["kind"], o["uid"]) for o in metadata["ownerReferences"]] == [("NodeClaim", claim["metadata"]["uid"])]
        assert claim["status"]["nodeName"] == metadata["name"]
        assert claim["metadata"]["ownerReferences"][0]["kind"] == "NodePool"
        assert "taints" not in node["spec"]
    (pool,) = eventually(lambda: [p for p in plane.items(POOLS) if p["status"].get("nodes") == len(claims)])
    assert is_true(pool, "Ready")
    assert is_true(pool, "NodeRegistrationHealthy")
    assert pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash"]
    assert set(nodes) == {claim["status"]["providerID"] for claim in node_claims(plane)}

    plane.request("DELETE", "/apis/karpenter.sh/v1/nodepools/default")
    for name in ("a", "b"):
        plane.request("DELETE", f"/apis/apps/v1/namespaces/default/deployments/{name}")
    eventually(lambda: not node_claims(plane) and not plane.items("/api/v1/nodes"), kerf=kerf)
    assert kerf.stop() == 0
    assert "same" in kerf.verify()


def test_a_user_deletes_a_node_and_its_pods_find_another(plane: ControlPlane, kerf: Kerf) -> None:
    """L-193, L-496: the finalizer holds the Node until its pods are gone."""
    for document in (node_class("default"), node_pool()):
        plane.request("POST", f"/apis/{document['apiVersion']}/{document['kind'].lower()}s", document)
    plane.apply(deployment("c", 5, "500m"))
    kerf.start()
    eventually(lambda: len(running_pods(plane)) == 5, kerf=kerf)
    eventually(lambda: all(is_true(node_claim, "Ready") for node_claim in node_claims(plane)), kerf=kerf)
    first = node_claims(plane)[0]
    plane.request("DELETE", f"/api/v1/nodes/{first['status']['nodeName']}")
    eventually(lambda: first["metadata"]["name"] not in {c["metadata"]["name"] for c in node_claims(plane)}, kerf=kerf)
    eventually(lambda: len(running_pods(plane)) == 5, kerf=kerf)
    assert kerf.stop() == 0
    assert "same" in kerf.verify()


def test_nodes_that_are_no_longer_needed_go_and_their_pods_find_others(plane: ControlPlane, kerf: Kerf) -> None:
    """Consolidation live: moves under budgets, looked at twice (D-108), replacements first."""
    plane.request("POST", "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", node_class())
    quick = node_pool("quick", disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})
    plane.request("DELETE", "/apis/karpenter.sh/v1/nodepools/default")
    plane.apply(quick)
    plane.apply(deployment("shrinks", 40, "900m"))
    kerf.start()
    eventually(lambda: len([p for p in running_pods(plane) if "shrinks" in p["metadata"]["name"]]) == 40, kerf=kerf)
    before = price(plane)
    scale = {"spec": {"replicas": 4}}
    path = "/apis/apps/v1/namespaces/default/deployments/shrinks/scale"
    assert plane.request("PATCH", path, scale, "application/merge-patch+json")[0] == 200
    eventually(lambda: price(plane) < before / 2, seconds=120, kerf=kerf)
    eventually(lambda: len([p for p in running_pods(plane) if "shrinks" in p["metadata"]["name"]]) == 4, kerf=kerf)
    assert kerf.stop() == 0
    assert "same" in kerf.verify()


def price(plane: ControlPlane) -> float:
    """Of all nodes, USD per hour."""
    nodes = plane.items("/api/v1/nodes")
    return sum(float(node["metadata"]["labels"]["eks-node-viewer/instance-price"]) for node in nodes)
