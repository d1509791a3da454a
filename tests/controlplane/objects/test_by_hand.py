"""What users do to kerf's objects by hand, and NodeClaims that they make themselves (L-145, L-190, L-193, L-239)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.record.claim_events import Tainted
from kerf.engine.record.observations import InstanceSeen
from tests.support.controlplane.live import CLAIMS, CLASSES, NODES, PODS, Live, nodes_of, on, pod, require, workload
from tests.support.controlplane.running import is_true, node_class

pytestmark = pytest.mark.slow
TYPE = "node.kubernetes.io/instance-type"
TESTING = "testing/finalizer"


def claim_by_hand(name: str, *, of: str = "default", **spec: Any) -> dict[str, Any]:
    """As Karpenter's own tests make them: without a NodePool, without an owner. Amounts and durations are written as
    people write them, not as kerf does."""
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": of}
    requirements = [
        require(TYPE, "In", "c-16x-amd64-linux", "c-16x-arm64-linux"),
        require("kubernetes.io/arch", "In", "amd64"),
        require("karpenter.sh/capacity-type", "In", "on-demand"),
    ]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"example.com/by": "hand"}, "annotations": {"example.com/note": "mine"}},
        "spec": {"requirements": requirements, "nodeClassRef": ref, **spec},
    }


def node_named(cluster: Live, claim: str) -> dict[str, Any]:
    """The Node of a claim that is ready."""
    cluster.until(lambda: is_true(cluster.plane.get(f"{CLAIMS}/{claim}"), "Ready"))
    found: dict[str, Any] = cluster.plane.get(f"{NODES}/{cluster.plane.get(f'{CLAIMS}/{claim}')['status']['nodeName']}")
    return found


def test_a_claim_made_by_hand_gets_a_node_with_all_that_it_says(cluster: Live) -> None:
    """L-145, L-163: labels, annotations, taints, owner; the spec stays as its author wrote it."""
    taints = [
        {"key": "example.com/a", "value": "b", "effect": "NoSchedule"},
        {"key": "example.com/c", "effect": "NoExecute"},
    ]
    spec: dict[str, Any] = {
        "taints": taints,
        "resources": {"requests": {"cpu": "3000m", "memory": "11264Mi"}},
        "expireAfter": "1440m",
        "terminationGracePeriod": "60m",
    }
    cluster.make(claim_by_hand("mine", **spec))
    node = node_named(cluster, "mine")
    claim = cluster.plane.get(f"{CLAIMS}/mine")
    assert node["metadata"]["labels"]["karpenter.sh/capacity-type"] == "on-demand"
    assert node["metadata"]["labels"]["example.com/by"] == "hand"
    assert node["metadata"]["annotations"]["example.com/note"] == "mine"
    assert node["spec"]["taints"] == taints
    (owner,) = node["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("NodeClaim", "mine", claim["metadata"]["uid"])
    assert owner["blockOwnerDeletion"] is True
    assert claim["spec"]["resources"] == spec["resources"]
    assert (claim["spec"]["expireAfter"], claim["spec"]["terminationGracePeriod"]) == ("1440m", "60m")
    assert "karpenter.sh/termination" in claim["metadata"]["finalizers"]
    cluster.delete(f"{CLAIMS}/mine")
    cluster.gone(f"{CLAIMS}/mine")
    cluster.gone(f"{NODES}/{node['metadata']['name']}")


def test_deleting_its_node_takes_a_claim_made_by_hand_along(cluster: Live) -> None:
    """Deleting the Node of a claim that was made by hand deletes the claim too (L-193)."""
    cluster.make(claim_by_hand("node-first"))
    node = node_named(cluster, "node-first")
    cluster.delete(f"{NODES}/{node['metadata']['name']}")
    cluster.gone(f"{CLAIMS}/node-first")
    cluster.gone(f"{NODES}/{node['metadata']['name']}")


def test_a_claim_whose_node_class_is_missing_or_broken_goes(cluster: Live) -> None:
    """L-152, L-153, L-159: nothing is launched for it, and nothing holds it."""
    cluster.make(node_class("broken"))
    condition = {"type": "Ready", "status": "False", "reason": "Broken", "message": "no"}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    cluster.patch(f"{CLASSES}/broken/status", {"status": {"conditions": [condition]}})
    cluster.make(claim_by_hand("classless", of="nowhere"), claim_by_hand("broken", of="broken"))
    for name in ("classless", "broken"):
        cluster.gone(f"{CLAIMS}/{name}", 90)
    assert not {"classless", "broken"} & {
        node_document["metadata"]["labels"].get("karpenter.kwok.sh/nodeclaim")
        for node_document in cluster.plane.items(NODES)
    }


def test_a_claim_that_a_user_deletes_is_drained_and_its_pods_go_elsewhere(cluster: Live) -> None:
    """L-188 to L-192, L-496: the deletion shows on the object while it drains, and the finalizer holds it."""
    cluster.make(nodes_of("given-up"), workload("moves", 2, **on("given-up")))
    cluster.running("moves", 2)
    (claim,) = cluster.ready("given-up", 1)
    name = claim["metadata"]["name"]
    cluster.delete(f"{CLAIMS}/{name}")
    cluster.until(lambda: any(node["spec"].get("taints") for node in cluster.nodes("given-up")))
    cluster.gone(f"{CLAIMS}/{name}")
    cluster.running("moves", 2)
    cluster.ready("given-up", 1)
    assert [payload.why for payload in cluster.payloads(Tainted) if payload.claim == name] == ["deleted"]


def test_pods_that_must_not_be_disrupted_hold_a_node_that_the_garbage_collector_deletes(cluster: Live) -> None:
    """L-194, L-202: deleted with what depends on it (`--cascade=foreground`), a claim loses its Node at once; that is
    ready, so it is drained, and its instance runs until then."""
    stays = pod("stays", annotations={"karpenter.sh/do-not-disrupt": "true"}, **on("cascade"))
    cluster.make(nodes_of("cascade"), stays)
    cluster.running("stays")
    (claim,) = cluster.ready("cascade", 1)
    (node,) = cluster.nodes("cascade")
    here = f"{NODES}/{node['metadata']['name']}"
    foreground = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
    cluster.plane.request("DELETE", f"{CLAIMS}/{claim['metadata']['name']}", foreground)
    cluster.until(lambda: cluster.plane.get(here)["metadata"].get("deletionTimestamp"))
    said = InstanceSeen(node["metadata"]["name"], "running", claim["metadata"]["name"])
    cluster.until(lambda: said in cluster.payloads(InstanceSeen))
    assert [pod_document["metadata"].get("deletionTimestamp") for pod_document in cluster.pods("stays")] == [None]
    cluster.delete(f"{PODS}/stays?gracePeriodSeconds=0")
    cluster.gone(here)
    cluster.gone(f"{CLAIMS}/{claim['metadata']['name']}")


def test_a_node_whose_finalizer_somebody_takes_off_is_replaced(cluster: Live) -> None:
    """L-237, L-239: a Node that is gone without a drain ends its claim, and its pods get another."""
    cluster.make(nodes_of("forced"), workload("forced", 1, **on("forced")))
    cluster.running("forced")
    (claim,) = cluster.ready("forced", 1)
    node = claim["status"]["nodeName"]
    cluster.patch(f"{NODES}/{node}", {"metadata": {"finalizers": None}})
    cluster.delete(f"{NODES}/{node}")
    cluster.gone(f"{CLAIMS}/{claim['metadata']['name']}", 90)
    cluster.running("forced", seconds=90)
    cluster.ready("forced", 1)
    assert node not in {node_document["metadata"]["name"] for node_document in cluster.nodes("forced")}


def test_somebody_elses_finalizer_holds_a_node_and_nothing_else(cluster: Live) -> None:
    """As Karpenter's tests do to look at a node on its way out: its claim waits, other nodes come and go."""
    cluster.make(nodes_of("held"), workload("held", 1, **on("held")))
    cluster.running("held")
    (claim,) = cluster.ready("held", 1)
    node = claim["status"]["nodeName"]
    own = cluster.plane.get(f"{NODES}/{node}")["metadata"]["finalizers"]
    cluster.patch(f"{NODES}/{node}", {"metadata": {"finalizers": [*own, TESTING]}})
    cluster.delete(f"{CLAIMS}/{claim['metadata']['name']}")
    cluster.until(lambda: cluster.plane.get(f"{NODES}/{node}")["metadata"].get("finalizers") == [TESTING])
    cluster.running("held")
    left = cluster.plane.get(f"{NODES}/{node}")["metadata"]
    assert "deletionTimestamp" in left
    cluster.patch(f"{NODES}/{node}", {"metadata": {"finalizers": None}})
    cluster.gone(f"{NODES}/{node}")
    cluster.gone(f"{CLAIMS}/{claim['metadata']['name']}")
    cluster.ready("held", 1)


def test_labels_of_a_claim_and_a_node_that_users_change(cluster: Live) -> None:
    """L-165, L-242: kerf's own come back on the claim; a Node's other labels are its user's."""
    cluster.make(nodes_of("relabelled"), workload("relabelled", 1, **on("relabelled")))
    cluster.running("relabelled")
    (claim,) = cluster.ready("relabelled", 1)
    node = claim["status"]["nodeName"]
    cluster.patch(f"{NODES}/{node}", {"metadata": {"labels": {"example.com/mine": "yes"}}})
    cluster.patch(f"{CLAIMS}/{claim['metadata']['name']}", {"metadata": {"labels": {"example.com/mine": "yes"}}})
    cluster.make(pod("asks", "100m", nodeSelector={"example.com/mine": "yes"}))
    cluster.running("asks")
    assert len(cluster.claims("relabelled")) == 1
    assert cluster.plane.get(f"{CLAIMS}/{claim['metadata']['name']}")["metadata"]["labels"]["example.com/mine"] == "yes"


def test_a_node_that_never_was_karpenters_is_left_alone(cluster: Live) -> None:
    """L-48, L-260: its room counts, it is never drained."""
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "example.com/static": "yes"}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "20Gi"}
    cluster.make(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "own", "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"capacity": amounts, "allocatable": amounts},
        },
        nodes_of("unneeded"),
        pod("there", nodeSelector={"example.com/static": "yes"}),
    )
    cluster.running("there")
    assert not cluster.claims("unneeded")
    assert "finalizers" not in cluster.plane.get(f"{NODES}/own")["metadata"]
    cluster.delete(f"{NODES}/own")
    cluster.gone(f"{NODES}/own")
