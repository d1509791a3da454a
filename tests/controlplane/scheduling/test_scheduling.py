"""What pods may ask for, planned by kerf and bound by a real kube-scheduler (scheduling.md 6 to 10)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.claim_events import PodEvicted
from tests.support.controlplane.live import (
    BUDGETS,
    CLAIMS,
    NODES,
    PODS,
    POOLS,
    Live,
    budget,
    names,
    nodes_of,
    on,
    pod,
    require,
    workload,
)

pytestmark = pytest.mark.slow
ZONE, HOST, CAPACITY = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "karpenter.sh/capacity-type"
CPU = "karpenter.kwok.sh/instance-cpu"
ANY_TIME = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}


def spread(app: str, key: str, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
                **more,
            }
        ]
    }


def together(app: str, key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def required(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def prefer(expression: dict[str, Any]) -> dict[str, Any]:
    """Of nodes."""
    term = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def domains(cluster: Live, app: str, key: str) -> Counter[str]:
    """How many of its pods are in which domain."""
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in cluster.plane.items(NODES)}
    return Counter(labels[pod_document["spec"]["nodeName"]].get(key, "") for pod_document in cluster.pods(app))


def test_pods_are_spread_over_zones_hosts_and_capacity_types(cluster: Live) -> None:
    """S-117 to S-142: each over one key, and minDomains."""
    cluster.make(
        nodes_of("spread", require(CAPACITY, "In", "spot", "on-demand")),
        workload("zones", 8, **spread("zones", ZONE), **on("spread")),
        workload("hosts", 3, **spread("hosts", HOST), **on("spread")),
        workload("kinds", 4, **spread("kinds", CAPACITY), **on("spread")),
        workload("least", 3, **spread("least", ZONE, minDomains=3), **on("spread")),
    )
    for app, count in (("zones", 8), ("hosts", 3), ("kinds", 4), ("least", 3)):
        cluster.running(app, count, 90)
    assert sorted(domains(cluster, "zones", ZONE).values()) == [2, 2, 2, 2]
    assert sorted(domains(cluster, "hosts", HOST).values()) == [1, 1, 1]
    assert domains(cluster, "kinds", CAPACITY) == {"spot": 2, "on-demand": 2}
    assert sorted(domains(cluster, "least", ZONE).values()) == [1, 1, 1]


def test_labels_that_the_api_server_gives_bound_pods_do_not_tell_them_apart(cluster: Live) -> None:
    """S-131, KEP-4742: pods of one workload stay of one kind, in whichever zone they are."""
    cluster.make(nodes_of("labelled"), workload("labelled", 4, **spread("labelled", ZONE), **on("labelled")))
    bound = cluster.running("labelled", 4, 90)
    assert len({each["metadata"]["labels"][ZONE] for each in bound}) == 4, "written by the API server"
    uids = {each["metadata"]["uid"] for each in bound}
    assert len({each.shape for each in cluster.payloads(Pod) if each.uid in uids}) == 1


def test_pods_are_together_and_apart_as_they_ask(cluster: Live) -> None:
    """S-142 to S-148, and preferences that give way (S-36)."""
    wish = prefer(require("example.com/none", "Exists"))
    prefers = prefer(require(ZONE, "In", "test-zone-c"))
    cluster.make(
        nodes_of("social"),
        nodes_of("close"),
        nodes_of("prefers"),
        workload("apart", 3, **required("podAntiAffinity", together("apart", HOST)), **on("social")),
        workload("lead", 1, **on("social")),
        workload("follow", 2, **required("podAffinity", together("lead", ZONE)), **on("social")),
        # On nodes of their own: where others' nodes are late, these may take the place of one of the two, for good.
        workload("close", 2, **required("podAffinity", together("close", HOST)), **on("close")),
        workload("wishes", 1, **wish, **on("social")),
        # So with this one: a preference is only points to the scheduler, and the node that is ready first gets the pod.
        workload("prefers", 1, **prefers, **on("prefers")),
    )
    for app, count in (("apart", 3), ("lead", 1), ("follow", 2), ("close", 2), ("wishes", 1), ("prefers", 1)):
        cluster.running(app, count, 90)
    assert len(domains(cluster, "apart", HOST)) == 3
    assert set(domains(cluster, "follow", ZONE)) == set(domains(cluster, "lead", ZONE))
    assert len(domains(cluster, "close", HOST)) == 1
    assert set(domains(cluster, "prefers", ZONE)) == {"test-zone-c"}


def test_one_host_port_a_node_and_gated_pods_wait(cluster: Live) -> None:
    """S-97: two pods with one host port need two nodes. S-40: a gated pod asks for none until its gate is gone."""
    port = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    cluster.make(
        nodes_of("ports"),
        nodes_of("gated"),
        workload("ports", 2, "100m", **port, **on("ports")),
        pod("gated", schedulingGates=[{"name": "example.com/wait"}], **on("gated")),
    )
    cluster.running("ports", 2)
    assert len(domains(cluster, "ports", HOST)) == 2
    assert not cluster.claims("gated")
    cluster.patch(f"{PODS}/gated", {"spec": {"schedulingGates": []}})
    cluster.running("gated")


def test_room_for_daemons_is_on_every_new_node(cluster: Live) -> None:
    """S-79 to S-83: pod and DaemonSet fit together on the first node that is launched."""
    template = pod("agent", "700m", **on("with-daemon"))
    daemon = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": template["spec"]},
        },
    }
    cluster.make(daemon)
    cluster.make(nodes_of("with-daemon"), pod("beside", "800m", **on("with-daemon")))
    cluster.running("beside")
    cluster.running("agent")
    (claim,) = cluster.ready("with-daemon", 1)
    assert claim["spec"]["resources"]["requests"]["cpu"] == "1500m"


def test_a_pod_that_preempts_another_is_left_alone(cluster: Live) -> None:
    """S-40: the scheduler has found it a place; the pod that it drives out gets a node."""
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "important"},
        "value": 1000,
    }
    cluster.make(
        priority,
        nodes_of("contested", require(CPU, "In", "2"), limits={"cpu": "2"}),
        workload("humble", 1, "1500m", **on("contested")),
    )
    cluster.running("humble")
    cluster.ready("contested", 1)
    cluster.make(pod("important", "1500m", priorityClassName="important", **on("contested")))
    cluster.running("important")
    assert len(cluster.claims("contested")) == 1
    cluster.patch(f"{POOLS}/contested", {"spec": {"limits": {"cpu": "4"}}})
    cluster.running("humble")
    assert len(cluster.ready("contested", 2)) == 2


def test_what_must_not_be_disrupted_stays(cluster: Live) -> None:
    """L-91, D-30 to D-34, D-88: annotations of pods and nodes, a duration that ends, budgets of pods."""
    never = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    soon = {"annotations": {"karpenter.sh/do-not-disrupt": "20s"}}
    kinds: dict[str, dict[str, Any]] = {"kept": never, "soon": soon, "budgeted": {}, "free": {}}
    for name, more in kinds.items():
        cluster.make(
            nodes_of(f"d-{name}", require(CPU, "In", "1", "16"), disruption=ANY_TIME),
            pod(f"big-{name}", "14", **on(f"d-{name}")),
        )
        cluster.running(f"big-{name}")
        cluster.make(workload(f"d-{name}", 1, "200m", **more, **on(f"d-{name}")))
    cluster.make(budget("d-budgeted", minAvailable=1))
    for name in kinds:
        cluster.running(f"d-{name}")
        cluster.ready(f"d-{name}", 1)
    before = {name: names(cluster.claims(f"d-{name}")) for name in kinds}
    for name in kinds:
        cluster.delete(f"{PODS}/big-{name}")
    for name in ("free", "soon"):
        gone_and_replaced(cluster, name, before[name])
    for name in ("kept", "budgeted"):
        assert names(cluster.claims(f"d-{name}")) == before[name]
        (node,) = cluster.nodes(f"d-{name}")
        assert "DisruptionBlocked" in {reason for reason, _ in cluster.events(node["metadata"]["uid"])}
    cluster.delete(f"{BUDGETS}/d-budgeted")
    gone_and_replaced(cluster, "budgeted", before["budgeted"])


def gone_and_replaced(cluster: Live, name: str, before: set[str]) -> None:
    cluster.until(lambda: not before & names(cluster.claims(f"d-{name}")), 90)
    cluster.running(f"d-{name}")


def test_a_drain_leaves_out_what_it_should(cluster: Live) -> None:
    """L-202, L-205, D-150: pods that tolerate the taint and static pods do not hold a drain; pods that are not ready
    go under a budget that says AlwaysAllow."""
    tolerant = [{"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoSchedule"}]
    cluster.make(
        nodes_of("draining"),
        workload("sick", 1, "100m", **on("draining")),
        pod("tolerant", "100m", tolerations=tolerant, **on("draining")),
        budget("sick", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"),
    )
    cluster.running("sick")
    cluster.running("tolerant")
    (claim,) = cluster.ready("draining", 1)
    node = claim["status"]["nodeName"]
    mirror = pod("mirror", "10m", annotations={"kubernetes.io/config.mirror": "x"}, nodeName=node)
    mirror["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid_of(cluster, node), "controller": True}
    ]
    cluster.make(mirror)
    (sick,) = cluster.pods("sick")
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    cluster.patch(f"{PODS}/{sick['metadata']['name']}/status", unready, "application/strategic-merge-patch+json")
    tolerated = cluster.pods("tolerant")[0]["metadata"]["uid"]
    cluster.delete(f"{CLAIMS}/{claim['metadata']['name']}")
    cluster.gone(f"{CLAIMS}/{claim['metadata']['name']}")
    evicted = {payload.uid for payload in cluster.payloads(PodEvicted) if payload.claim == claim["metadata"]["name"]}
    assert evicted == {sick["metadata"]["uid"]}
    assert tolerated not in evicted


def uid_of(cluster: Live, node: str) -> str:
    uid: str = cluster.plane.get(f"{NODES}/{node}")["metadata"]["uid"]
    return uid


def test_a_pod_that_cannot_end_holds_its_node_for_a_minute_at_most(cluster: Live) -> None:
    """L-202: stuck terminating, more than a minute past its grace period, it is waited for no longer. (KWOK ends a pod
    at once: a finalizer keeps it, and its time of deletion is what the API server set.)"""
    stuck = pod("stuck", "100m", **on("stuck"))
    stuck["metadata"]["finalizers"] = ["example.com/stuck"]
    cluster.make(nodes_of("stuck", template={"terminationGracePeriod": "10s"}), stuck)
    cluster.running("stuck")
    (claim,) = cluster.ready("stuck", 1)
    cluster.delete(f"{CLAIMS}/{claim['metadata']['name']}")
    cluster.gone(f"{CLAIMS}/{claim['metadata']['name']}", 120)
    cluster.plane.request("PATCH", f"{PODS}/stuck", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
