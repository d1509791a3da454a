"""Every feature of a NodePool once, on a real API server (lifecycle.md 1.2, 3, 4.3; disruption.md 3, 4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.controlplane.live import (
    CLAIMS,
    CLASSES,
    NODES,
    PODS,
    POOLS,
    Live,
    names,
    nodes_of,
    on,
    pod,
    require,
    workload,
)
from tests.support.controlplane.running import is_true, node_class

pytestmark = pytest.mark.slow
TYPE, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
CPU, MEMORY, FAMILY = (f"karpenter.kwok.sh/instance-{label}" for label in ("cpu", "memory", "family"))
CAPACITY = "karpenter.sh/capacity-type"
DEADLINE = "karpenter.sh/nodeclaim-termination-timestamp"


def labels(node: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = node["metadata"]["labels"]
    return found


def requirement(claim: dict[str, Any], key: str) -> dict[str, Any]:
    return next(required for required in claim["spec"]["requirements"] if required["key"] == key)


def test_all_operators_of_requirements(cluster: Live) -> None:
    """L-13, L-32, L-33, L-140, L-142: the node has what the pool and the pod ask for together."""
    cluster.make(
        nodes_of(
            "operators",
            require(CAPACITY, "In", "spot", "on-demand"),
            require(ZONE, "NotIn", "test-zone-a", "test-zone-b"),
            require(FAMILY, "Exists"),
            require("example.com/gpu", "DoesNotExist"),
            require("example.com/team", "In", "red", "blue"),
            require(CPU, "Gt", "2"),
            require(CPU, "Lt", "16"),
            require(MEMORY, "Gte", "16384"),
            require(MEMORY, "Lte", "32768"),
        ),
        workload("asks", 3, "1", nodeSelector={**on("operators")["nodeSelector"], "example.com/team": "blue"}),
        pod("gpu", nodeSelector={**on("operators")["nodeSelector"], "example.com/gpu": "yes"}),
    )
    cluster.running("asks", 3)
    (claim,) = cluster.ready("operators", 1)
    found = labels(cluster.nodes("operators")[0])
    assert found[CAPACITY] == "spot"  # cheaper, and allowed
    assert found[ZONE] in ("test-zone-c", "test-zone-d")
    assert 2 < int(found[CPU]) < 16
    assert 16384 <= int(found[MEMORY]) <= 32768
    assert found["example.com/team"] == "blue"
    assert "example.com/gpu" not in found
    assert requirement(claim, TYPE)["operator"] == "In"
    assert "example.com/gpu" in cluster.refused("gpu")


def test_min_values_keep_the_choice_wide(cluster: Live) -> None:
    """L-33, L-142, S-155: so many types and families go into the request, or nothing is launched."""
    cluster.make(
        nodes_of("wide", require(TYPE, "Exists", minValues=5), require(FAMILY, "In", "c", "s", "m", minValues=3)),
        nodes_of("narrow", require(TYPE, "Exists", minValues=5), require(FAMILY, "In", "c"), require(CPU, "Lt", "4")),
        workload("wide", 1, **on("wide")),
        workload("narrow", 1, **on("narrow")),
    )
    cluster.running("wide")
    (claim,) = cluster.ready("wide", 1)
    offered = requirement(claim, TYPE)
    assert offered["minValues"] == 5
    assert len(offered["values"]) >= 5
    assert {value[0] for value in offered["values"]} == {"c", "s", "m"}
    assert claim["metadata"]["annotations"]["karpenter.sh/nodeclaim-min-values-relaxed"] == "false"
    assert "NodePool narrow" in cluster.refused("narrow")
    assert not cluster.claims("narrow")


def test_labels_annotations_and_taints_reach_the_node(cluster: Live) -> None:
    """L-10 to L-12, L-140, L-141, L-163; a pod that does not tolerate the taint finds no node."""
    taints = [{"key": "team", "value": "red", "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"}]
    cluster.make(
        nodes_of(
            "marked",
            template={"taints": taints},
            metadata={"labels": {"example.com/team": "red"}, "annotations": {"example.com/owner": "someone"}},
        ),
        pod("tolerant", tolerations=[{"key": "team", "operator": "Equal", "value": "red"}], **on("marked")),
        pod("stranger", **on("marked")),
    )
    cluster.running("tolerant")
    (claim,) = cluster.ready("marked", 1)
    (node,) = cluster.nodes("marked")
    assert labels(node)["example.com/team"] == labels(claim)["example.com/team"] == "red"
    assert node["metadata"]["annotations"]["example.com/owner"] == "someone"
    assert claim["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"] == "v3"
    assert {(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]} == {
        ("team", "NoSchedule"),
        ("soft", "PreferNoSchedule"),
    }
    assert "does not tolerate team=red:NoSchedule" in cluster.refused("stranger")


def test_a_node_is_initialized_when_somebody_has_removed_its_startup_taint(cluster: Live) -> None:
    """L-163, L-172: registered and not initialized until then; pods need not tolerate it (S-83)."""
    taint = {"key": "example.com/agent", "value": "starting", "effect": "NoSchedule"}
    cluster.make(nodes_of("starting", template={"startupTaints": [taint]}), pod("waits", **on("starting")))
    cluster.until(lambda: any(is_true(node_claim, "Registered") for node_claim in cluster.claims("starting")))
    (claim,) = cluster.claims("starting")
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    cluster.until(lambda: cluster.conditions(path)["Initialized"] == ("Unknown", "StartupTaintsExist"))
    (node,) = cluster.nodes("starting")
    assert [(entry["key"], entry["effect"]) for entry in node["spec"]["taints"]] == [
        ("example.com/agent", "NoSchedule")
    ]
    assert "karpenter.sh/initialized" not in labels(node)
    cluster.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"taints": []}})
    cluster.running("waits")
    (claim,) = cluster.ready("starting", 1)
    (node,) = cluster.nodes("starting")
    assert labels(node)["karpenter.sh/initialized"] == "true"
    assert "taints" not in node["spec"]  # what was removed is not put back (L-165)


def test_the_heavier_pool_is_taken_though_it_is_dearer(cluster: Live) -> None:
    """L-26, L-35: by weight, and then by name, the later one first."""
    group = {"labels": {"example.com/group": "weighed"}}
    dear = (require(FAMILY, "In", "m"), require(CPU, "Gt", "8"))
    cluster.make(
        nodes_of("light", metadata=group, weight=1),
        nodes_of("heavy", *dear, metadata=group, weight=50),
        nodes_of("unset", metadata=group),
        workload("weighed", 2, nodeSelector={"example.com/group": "weighed"}),
    )
    cluster.running("weighed", 2)
    cluster.ready("heavy", 1)
    assert not cluster.claims("light")
    assert not cluster.claims("unset")


def test_limits_hold_pods_back_until_they_are_raised(cluster: Live) -> None:
    """L-25, L-144, S-68, S-69: of cpu, of memory, of nodes."""
    limits = {"cpu": ("2", "8"), "memory": ("8Gi", "32Gi"), "nodes": ("1", "2")}
    for name, (limit, _) in limits.items():
        term = {"labelSelector": {"matchLabels": {"app": f"limit-{name}"}}, "topologyKey": "kubernetes.io/hostname"}
        alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        cluster.make(
            nodes_of(f"limit-{name}", require(CPU, "In", "2"), require(FAMILY, "In", "s"), limits={name: limit}),
            workload(f"limit-{name}", 1, affinity=alone, **on(f"limit-{name}")),
        )
    for name in limits:
        cluster.running(f"limit-{name}")
        cluster.scale(f"limit-{name}", 2)
    for name in limits:
        assert "limit" in cluster.refused(f"limit-{name}")
        cluster.ready(f"limit-{name}", 1)
    for name, (_, raised) in limits.items():
        cluster.patch(f"{POOLS}/limit-{name}", {"spec": {"limits": {name: raised}}})
    for name in limits:
        cluster.running(f"limit-{name}", 2)
        cluster.ready(f"limit-{name}", 2)


def test_a_pool_whose_node_class_is_missing_waits_for_it(cluster: Live) -> None:
    """L-81, L-253, L-254: the condition says so, pods wait, and go on when the NodeClass comes."""
    pool = nodes_of("early")
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "late"
    cluster.make(pool, pod("early", **on("early")))
    cluster.until(lambda: cluster.conditions(f"{POOLS}/early").get("NodeClassReady") == ("False", "NodeClassNotFound"))
    assert cluster.conditions(f"{POOLS}/early")["Ready"] == ("False", "UnhealthyDependents")
    assert cluster.refused("early")
    assert not cluster.claims("early")
    cluster.make(node_class("late"))
    cluster.running("early")
    cluster.until(lambda: cluster.conditions(f"{POOLS}/early")["Ready"] == ("True", "Ready"))
    cluster.patch(
        f"{CLASSES}/late/status",
        {"status": {"conditions": [{**ready(False), "reason": "Broken", "message": "nothing works"}]}},
    )
    cluster.until(lambda: cluster.conditions(f"{POOLS}/early")["NodeClassReady"] == ("False", "Broken"))
    cluster.patch(f"{CLASSES}/late/status", {"status": {"conditions": [ready(True)]}})
    cluster.until(lambda: is_true(cluster.plane.get(f"{POOLS}/early"), "Ready"))


def ready(true: bool) -> dict[str, str]:
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": "Ready", "status": str(true), "reason": "Ready", "message": "", "lastTransitionTime": when}


def test_a_pool_that_is_no_good_says_why_and_stops_no_other(cluster: Live) -> None:
    """L-34, L-36, L-80, L-252: what the schema lets pass is refused by the controller."""
    bad = nodes_of("bad", require("example.com/team", "In", "not a label value!"))
    cluster.make(bad, nodes_of("good"), pod("fine", **on("good")))
    cluster.until(
        lambda: cluster.conditions(f"{POOLS}/bad").get("ValidationSucceeded") == ("False", "NodePoolValidationFailed")
    )
    assert cluster.conditions(f"{POOLS}/bad")["Ready"] == ("False", "UnhealthyDependents")
    cluster.running("fine")
    assert is_true(cluster.plane.get(f"{POOLS}/good"), "Ready")


def test_the_status_of_a_pool_counts_what_it_has(cluster: Live) -> None:
    """The status of a pool counts what it has (L-40, L-82, L-182 to L-185, L-255)."""
    cluster.make(nodes_of("counted", require(CPU, "In", "4"), require(FAMILY, "In", "s")))
    cluster.until(lambda: cluster.conditions(f"{POOLS}/counted").get("NodeRegistrationHealthy", ("",))[0] == "Unknown")
    cluster.make(workload("counted", 2, "3", **on("counted")))
    cluster.running("counted", 2)

    def status() -> dict[str, Any]:
        found: dict[str, Any] = cluster.plane.get(f"{POOLS}/counted")["status"]
        return found

    cluster.until(lambda: status().get("nodes") == 2)
    cluster.until(lambda: cluster.conditions(f"{POOLS}/counted")["NodeRegistrationHealthy"][0] == "True")
    resources = status()["resources"]
    assert (resources["nodes"], resources["cpu"]) == ("2", "8")
    assert {"cpu", "memory", "pods", "ephemeral-storage", "nodes"} <= resources.keys()
    assert status()["nodeClassObservedGeneration"] == 1
    cluster.delete("/apis/apps/v1/namespaces/default/deployments/counted")
    for name in names(cluster.claims("counted")):
        cluster.delete(f"{CLAIMS}/{name}")
    cluster.until(lambda: status().get("nodes") == 0)
    assert {status()["resources"][resource] for resource in ("cpu", "nodes")} == {"0"}


def test_a_termination_grace_period_ends_what_nothing_else_may(cluster: Live) -> None:
    """L-16, L-188, L-189, L-203: a pod with do-not-disrupt goes by force, in time; the objects say until when."""
    cluster.make(
        nodes_of("patient", template={"terminationGracePeriod": "8s"}),
        pod("stays", annotations={"karpenter.sh/do-not-disrupt": "true"}, **on("patient")),
    )
    cluster.running("stays")
    (claim,) = cluster.ready("patient", 1)
    (node,) = cluster.nodes("patient")
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    before = datetime.now(UTC)
    cluster.delete(path)
    until = cluster.until(lambda: cluster.plane.get(path)["metadata"]["annotations"].get(DEADLINE))
    promised = datetime.fromisoformat(until)
    assert timedelta(seconds=6) < promised - before < timedelta(seconds=14)
    assert cluster.conditions(path)["Drained"] == ("Unknown", "Draining")
    assert cluster.pods("stays")[0]["status"]["phase"] == "Running"
    cluster.gone(f"{NODES}/{node['metadata']['name']}")
    cluster.gone(path)
    assert datetime.now(UTC) >= promised - timedelta(seconds=2)


def test_when_nodes_are_consolidated_is_the_pools_to_say(cluster: Live) -> None:
    """L-18, L-19, D-35, D-52 to D-56: each policy, and `Never`, at the same time on equal pools."""
    disruption = {
        "never": {"consolidateAfter": "Never"},
        "when-empty": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"},
        "underutilized": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized"},
        "balanced": {"consolidateAfter": "0s", "consolidationPolicy": "Balanced"},
    }
    for name, policy in disruption.items():
        cluster.make(
            nodes_of(name, require(CPU, "In", "4", "16"), disruption={**policy, "budgets": [{"nodes": "100%"}]}),
            workload(f"{name}-big", 1, "14", **on(name)),
        )
    for name in disruption:
        cluster.running(f"{name}-big")
        cluster.ready(name, 1)
        cluster.make(workload(f"{name}-small", 1, "1", **on(name)))
    for name in disruption:
        cluster.running(f"{name}-small")
    before = {name: names(cluster.claims(name)) for name in disruption}
    for name in disruption:
        cluster.delete(f"/apis/apps/v1/namespaces/default/deployments/{name}-big")
    for name in ("underutilized", "balanced"):  # a node of 16 cpu for one pod of 1
        replaced(cluster, name, before[name])
        cluster.running(f"{name}-small")
    assert names(cluster.claims("never")) == before["never"]
    assert names(cluster.claims("when-empty")) == before["when-empty"]
    assert "Consolidatable" not in cluster.conditions(f"{CLAIMS}/{before['never'].pop()}")
    cluster.delete("/apis/apps/v1/namespaces/default/deployments/when-empty-small")
    empty(cluster, "when-empty")


def replaced(cluster: Live, pool: str, before: set[str]) -> None:
    cluster.until(lambda: cluster.claims(pool) and not before & names(cluster.claims(pool)), 90)


def empty(cluster: Live, pool: str) -> None:
    cluster.until(lambda: not cluster.claims(pool), 90)


def test_budgets_say_how_many_nodes_go_when_and_why(cluster: Live) -> None:
    """L-20 to L-24, D-41 to D-49: a number, a share, a schedule, reasons; empty nodes of equal pools."""
    window = datetime.now(UTC) - timedelta(minutes=15)
    budgets = {
        "all": [{"nodes": "100%"}],
        "none": [{"nodes": "0"}],
        "scheduled": [{"nodes": "0", "schedule": f"{window.minute} {window.hour} * * *", "duration": "30m"}],
        "later": [{"nodes": "0", "schedule": f"{window.minute} {(window.hour + 12) % 24} * * *", "duration": "30m"}],
        "other-reason": [{"nodes": "0", "reasons": ["Empty"]}, {"nodes": "100%", "reasons": ["Drifted"]}],
    }
    for name, budget in budgets.items():
        disruption = {"consolidateAfter": "0s", "budgets": budget}
        cluster.make(nodes_of(name, disruption=disruption), pod(f"budget-{name}", **on(name)))
    for name in budgets:
        cluster.running(f"budget-{name}")
        cluster.ready(name, 1)
    for name in budgets:
        cluster.delete(f"{PODS}/budget-{name}")
    for name in ("all", "later"):
        empty(cluster, name)
    for name in ("none", "scheduled", "other-reason"):
        blocked(cluster, name)
    cluster.patch(f"{POOLS}/none", {"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}})
    empty(cluster, "none")


def blocked(cluster: Live, pool: str) -> None:
    """Its node could go, and may not."""
    (claim,) = cluster.claims(pool)
    assert "deletionTimestamp" not in claim["metadata"]
    cluster.until(lambda: "Consolidatable" in cluster.conditions(f"{CLAIMS}/{claim['metadata']['name']}"))
    uid = cluster.plane.get(f"{POOLS}/{pool}")["metadata"]["uid"]
    cluster.until(lambda: "DisruptionBlocked" in {reason for reason, _ in cluster.events(uid)})


def test_a_pools_objects_of_other_kinds_are_not_touched(cluster: Live) -> None:
    """L-48: a NodePool of a NodeClass of another provider is nobody's business here."""
    foreign = nodes_of("foreign")
    foreign["spec"]["template"]["spec"]["nodeClassRef"] = {
        "group": "karpenter.k8s.aws",
        "kind": "EC2NodeClass",
        "name": "a",
    }
    cluster.make(foreign, nodes_of("own"), pod("foreign", **on("foreign")), pod("own", **on("own")))
    cluster.running("own")
    assert cluster.refused("foreign")
    assert not cluster.claims("foreign")
    assert "status" not in cluster.plane.get(f"{POOLS}/foreign") or not cluster.conditions(f"{POOLS}/foreign")


def test_a_pool_takes_its_nodes_along_when_it_goes(cluster: Live) -> None:
    """L-256: and budgets of pods are kept while they go."""
    cluster.make(nodes_of("leaving"), nodes_of("staying"), workload("leaving", 2, **on("leaving")))
    cluster.running("leaving", 2)
    cluster.ready("leaving", 1)
    status, _ = cluster.plane.request("DELETE", f"{POOLS}/leaving", {"propagationPolicy": "Foreground"})
    assert status == 200
    cluster.until(lambda: not cluster.claims("leaving") and not cluster.nodes("leaving"))
    cluster.gone(f"{POOLS}/leaving")
    assert len(cluster.pods("leaving")) == 2  # pending: no pool of that name
