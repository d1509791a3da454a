"""Static NodePools on a real API server (L-257 to L-259, D-160 to D-167; gate StaticCapacity)."""

from __future__ import annotations

import pytest

from tests.support.controlplane.live import CLAIMS, POOLS, Live, names, nodes_of, on, pod, require, workload

FLAGS = ("--feature-gates", "StaticCapacity=true")
pytestmark = pytest.mark.slow
SMALL = require("karpenter.kwok.sh/instance-cpu", "In", "2")


def test_replicas_up_and_down_within_the_limit_of_nodes(cluster: Live) -> None:
    """L-257, L-258: as many as asked for, through the scale subresource too; empty nodes go first, and one whose pod
    must not be disrupted last."""
    pool = nodes_of("fixed", SMALL, replicas=2, limits={"nodes": "3"}, disruption={})
    pool["spec"]["template"]["metadata"] = {"labels": {"example.com/kind": "fixed"}}
    cluster.make(pool)
    cluster.ready("fixed", 2)
    cluster.patch(f"{POOLS}/fixed/scale", {"spec": {"replicas": 5}})
    claims = cluster.ready("fixed", 3)
    cluster.until(lambda: cluster.plane.get(f"{POOLS}/fixed")["status"].get("nodes") == 3)
    keep = {"karpenter.sh/do-not-disrupt": "true"}
    kept, used, _ = (claim["status"]["nodeName"] for claim in claims)
    cluster.make(pod("kept", annotations=keep, nodeName=kept), pod("used", nodeName=used))
    cluster.running("kept")
    cluster.running("used")
    cluster.patch(f"{POOLS}/fixed/scale", {"spec": {"replicas": 2}})
    cluster.until(lambda: names(cluster.nodes("fixed")) == {kept, used})
    cluster.patch(f"{POOLS}/fixed/scale", {"spec": {"replicas": 1}})
    cluster.until(lambda: names(cluster.nodes("fixed")) == {kept})
    cluster.patch(f"{POOLS}/fixed", {"spec": {"replicas": 0}})
    cluster.delete("/api/v1/namespaces/default/pods/kept")
    cluster.until(lambda: not cluster.claims("fixed"))


def test_drifted_nodes_of_a_fixed_pool_are_replaced_first(cluster: Live) -> None:
    """L-259: never fewer than asked for while the limit leaves room for one more."""
    pool = nodes_of("drifts", SMALL, replicas=2, limits={"nodes": "3"}, disruption={"budgets": [{"nodes": "100%"}]})
    cluster.make(pool)
    before = names(cluster.ready("drifts", 2))
    cluster.patch(f"{POOLS}/drifts", {"spec": {"template": {"metadata": {"annotations": {"example.com/v": "2"}}}}})

    def replaced() -> bool:
        there = cluster.claims("drifts")
        assert 2 <= len(there) <= 3
        return len(there) == 2 and not before & names(there)

    cluster.until(replaced, 120)
    for claim in cluster.ready("drifts", 2):
        assert claim["metadata"]["annotations"]["example.com/v"] == "2"


def test_pods_use_a_fixed_pool_and_never_make_it_larger(cluster: Live) -> None:
    """L-259, S-190: what does not fit goes to a dynamic pool; both go with their NodePools."""
    group = {"labels": {"example.com/group": "both"}}
    fixed = nodes_of("fixed-beside", SMALL, replicas=1, disruption={})
    fixed["spec"]["template"]["metadata"] = group
    cluster.make(fixed)
    (first,) = cluster.ready("fixed-beside", 1)
    cluster.make(
        nodes_of("dynamic", SMALL, metadata=group),
        workload("both", 2, "1500m", nodeSelector={"example.com/group": "both"}),
        workload("only-fixed", 1, "1500m", **on("fixed-beside")),
    )
    cluster.until(lambda: cluster.claims("dynamic"))
    assert names(cluster.claims("fixed-beside")) == {first["metadata"]["name"]}
    cluster.delete(f"{POOLS}/fixed-beside")
    cluster.gone(f"{CLAIMS}/{first['metadata']['name']}")
