"""What a random cluster has at its beginning: NodePools, workloads, budgets, volumes, and bad manifests among them."""

from __future__ import annotations

import random
from typing import Any

from kerf.engine.model.kubernetes.devices import Device, ResourceSlice
from tests.support.simulation.run import ZONES, documents

Document = dict[str, Any]

NAMESPACE = "other"
TYPES = ("c5.large", "c5.xlarge", "m5.large", "m5.xlarge", "r5.large")
STATIC = "static"
ODD = "odd"
NOT_GIVEN = (
    ("karpenter.k8s.aws/placement-group-id", "pg-1"),
    ("karpenter.k8s.aws/placement-group-partition", "2"),
    ("karpenter.k8s.aws/instance-tenancy", "dedicated"),
    ("topology.k8s.aws/zone-id", "usw2-az9"),
)
"""Well-known labels with a value that no node has: placement groups and their partitions, hardware without a price, a
zone that is not there."""
NO_SCHEDULE = "61 0 * * *"
"""The API server takes it, and nobody can read it (D-48)."""
BUFFER = "spare"
STORAGE_CLASS: Document = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp3"},
    "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}
BAD: tuple[Document, ...] = (
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad", "namespace": NAMESPACE}, "spec": {"containers": 1}},
    {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "bad"}, "spec": {"template": 7}},
    {"kind": "Deployment", "metadata": {"name": "no-version"}},
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p", "namespace": NAMESPACE},
     "spec": {"maxUnavailable": {"not": "a number"}}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "huge", "namespace": NAMESPACE},
     "spec": {"replicas": "many"}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bad-node"}, "status": {"capacity": {"cpu": "a lot"}}},
)  # fmt: skip
"""Each is refused at the edge, and nothing else stops for it."""


def node_class() -> Document:
    (found,) = documents("workshop/ec2nodeclass.yaml")
    made: Document = found
    return made


def node_pool(name: str, dice: random.Random, *, replicas: int | None = None) -> Document:
    """`replicas`: of a static NodePool."""
    kinds = dice.choice([["spot"], ["on-demand"], ["spot", "on-demand"]])
    if dice.random() < 0.5:
        kinds = [*kinds, "reserved"]  # where there is any
    types = sorted(dice.sample(TYPES, dice.randint(3, 5)))
    template: Document = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": kinds},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(ZONES)},
        ],
        "expireAfter": dice.choice(["Never", "Never", "25m", "40m"]),
    }
    grace = dice.choice([None, None, "2m", "10m"])
    if grace is not None:
        template["terminationGracePeriod"] = grace
    if dice.random() < 0.2:
        template["startupTaints"] = [{"key": "example.com/starting", "effect": "NoSchedule"}]
    labels = {"type": "karpenter", "pool": name}
    spec: Document = {"template": {"metadata": {"labels": labels}, "spec": template}}
    spec["disruption"] = {"budgets": budgets(dice)}
    if replicas is not None:
        spec["replicas"] = replicas
    else:
        spec["weight"] = dice.randint(1, 3)
        spec["disruption"] |= {
            "consolidationPolicy": dice.choice(["WhenEmpty", *["WhenEmptyOrUnderutilized"] * 3]),
            "consolidateAfter": dice.choice(["0s", "30s", "5m", "Never"]),
        }
    _rarely(spec, dice)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _rarely(spec: Document, dice: random.Random) -> None:
    """What few NodePools have. Of one whose budgets cannot be read nothing ever goes by choice, nor of one whose nodes
    say so themselves: what is left of these at the end is theirs."""
    template, disruption = spec["template"], spec["disruption"]
    drawn = dice.random()
    if drawn < 0.08:
        disruption["budgets"].append({"nodes": "1", "schedule": NO_SCHEDULE, "duration": "10m"})
    elif drawn < 0.14:
        template["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    if "replicas" in spec:
        if dice.random() < 0.3:
            spec["limits"] = {"nodes": dice.choice(["3", "6"])}
        return
    if disruption["consolidationPolicy"] != "WhenEmpty" and dice.random() < 0.3:
        disruption["consolidationPolicy"] = "Balanced"
    if dice.random() < 0.1:
        template["spec"]["requirements"][1]["minValues"] = 2
    if dice.random() < 0.1:
        spec["limits"] = {"cpu": "64"}


def keeps_its_nodes(pool: Document) -> bool:
    """Whether nodes of the NodePool stay although nothing runs on them."""
    spec = pool["spec"]
    unread = any(budget.get("schedule") == NO_SCHEDULE for budget in spec["disruption"]["budgets"])
    own = "karpenter.sh/do-not-disrupt" in spec["template"]["metadata"].get("annotations", {})
    return unread or own or spec["disruption"].get("consolidateAfter") == "Never"


def budgets(dice: random.Random) -> list[Document]:
    """Some with windows; none that never lets go of anything, for then nothing could be seen to."""
    found: list[Document] = [{"nodes": dice.choice(["10%", "30%", "100%", "1", "3"])}]
    if dice.random() < 0.3:
        found.append({"nodes": dice.choice(["0", "1"]), "schedule": window(dice), "duration": "20m"})
    if dice.random() < 0.2:
        found.append({"nodes": "1", "reasons": [dice.choice(["Empty", "Drifted", "Underutilized"])]})
    return found


def open_budgets() -> list[Document]:
    """All nodes may go at once."""
    return [{"nodes": "100%"}]


def window(dice: random.Random) -> str:
    """In the first hours: a simulation begins at midnight UTC."""
    return dice.choice([f"{dice.randint(0, 59)} 0 * * *", "*/45 * * * *", f"{dice.randint(0, 30)} 0,1 * * *"])


# ── workloads ──────────────────────────────────────────────────────────────────────────────────────────────────────


DRIVER = "gpu.example.com"


def slices() -> dict[str, tuple[ResourceSlice, ...]]:
    """What types bring of devices: all but one two GPUs, the largest four."""

    def gpus(count: int) -> tuple[ResourceSlice, ...]:
        return (ResourceSlice("", DRIVER, "gpus", devices=tuple(Device(f"gpu-{n}") for n in range(count))),)

    return {name: gpus(4 if name == "m5.xlarge" else 2) for name in TYPES if name != "c5.large"}


def devices(dice: random.Random) -> list[Document]:
    """A Deployment each of whose pods wants one GPU or two, by a claim of its own."""
    group = "resource.k8s.io/v1"
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    kind = {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}
    request = {"name": "gpus", "exactly": {"deviceClassName": "gpu", "count": dice.choice([1, 1, 2])}}
    template = {
        "apiVersion": group, "kind": "ResourceClaimTemplate", "metadata": {"name": "gpus", "namespace": NAMESPACE},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }  # fmt: skip
    pod = {
        "nodeSelector": {"type": "karpenter"},
        "terminationGracePeriodSeconds": dice.choice([0, 10, 30]),
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}],
    }
    labels = {"app": "gpus"}
    spec = {
        "replicas": dice.randint(1, 5),
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata = {"name": "gpus", "namespace": NAMESPACE}
    return [kind, template, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}]


def workload(name: str, pools: list[str], dice: random.Random) -> Document:
    """A Deployment, or a StatefulSet with or without volumes, each of whose pods fits on a node."""
    requests = {"cpu": f"{dice.choice([100, 500, 900])}m", "memory": f"{dice.choice([256, 1024, 3000])}Mi"}
    pod: Document = {
        "nodeSelector": dice.choice([{"type": "karpenter"}, {"type": "karpenter"}, {"pool": dice.choice(pools)}]),
        "terminationGracePeriodSeconds": dice.choice([0, 10, 30, 90]),
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
    }
    labels = {"app": name}
    metadata: Document = {"labels": labels}
    match = {"labelSelector": {"matchLabels": labels}}
    drawn = dice.random()
    if drawn < 0.12:
        rule = {"topologyKey": "kubernetes.io/hostname", **match}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    elif drawn < 0.24:
        spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        pod["topologySpreadConstraints"] = [{**spread, **match}]
    drawn = dice.random()
    if drawn < 0.08:
        metadata["annotations"] = {"karpenter.sh/do-not-disrupt": dice.choice(["true", "5m"])}
    elif drawn < 0.14:
        pod["tolerations"] = [{"operator": "Exists"}]
    elif drawn < 0.2:
        pod["priorityClassName"] = "system-cluster-critical"
    spec: Document = {
        "replicas": dice.randint(0, 6),
        "selector": {"matchLabels": labels},
        "template": {"metadata": metadata, "spec": pod},
    }
    kind = dice.choice(["Deployment", "Deployment", "Deployment", "StatefulSet"])
    if kind == "StatefulSet":
        spec["podManagementPolicy"] = dice.choice(["Parallel", "OrderedReady"])
        # Volumes that are bound to zones, and pods that must be spread over them, can keep each other out for good.
        if dice.random() < 0.7 and "topologySpreadConstraints" not in pod:
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3"}}]
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def crowd(name: str, dice: random.Random) -> Document:
    """A Deployment of many pods."""
    requests = {"cpu": f"{dice.choice([50, 200, 700, 1400])}m", "memory": f"{dice.choice([64, 512, 2000])}Mi"}
    labels = {"app": name}
    pod = {
        "nodeSelector": {"type": "karpenter"},
        "terminationGracePeriodSeconds": dice.choice([0, 10, 30]),
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
    }
    spec = {
        "replicas": dice.randint(6, 20),
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def spread_over_zones(name: str, replicas: int) -> Document:
    """A Deployment whose pods must be spread over all zones."""
    document = crowd(name, random.Random(name))
    spread = {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    pod = document["spec"]["template"]["spec"]
    pod["topologySpreadConstraints"] = [{**spread, "labelSelector": document["spec"]["selector"]}]
    pod["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "256Mi"}}
    document["spec"]["replicas"] = replicas
    return document


def disruption_budget(name: str, dice: random.Random) -> Document:
    """Of the workload of this name; some never allow an eviction."""
    rule: Document = dice.choice(
        [{"maxUnavailable": 1}, {"maxUnavailable": "30%"}, {"minAvailable": 1}, {"maxUnavailable": 0},
         {"minAvailable": "100%"}]
    )  # fmt: skip
    if dice.random() < 0.3:
        rule = {**rule, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"pdb-{name}"}
    spec = {**rule, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def daemon_set(dice: random.Random) -> Document:
    labels = {"app": "daemon"}
    requests = {"cpu": f"{dice.choice([50, 200])}m", "memory": "100Mi"}
    pod: Document = {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]}
    if dice.random() < 0.5:
        pod["tolerations"] = [{"operator": "Exists"}]
    template = {"metadata": {"labels": labels}, "spec": pod}
    metadata = {"name": "daemon", "namespace": "kube-system", "uid": "ds-daemon"}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def giant() -> Document:
    """No node has room for its pod: it waits for ever, and holds up nothing."""
    labels = {"app": "giant"}
    pod = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "900"}}}]}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata = {"name": "giant", "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def odd(dice: random.Random) -> list[Document]:
    """A NodePool, and pods for it alone. The one or the other asks for a label that no node of its gets, or that costs
    what nobody knows."""
    key, value = dice.choice(NOT_GIVEN)
    pool = node_pool(ODD, dice)
    labels = {"app": ODD}
    selector = {"pool": ODD}
    if dice.random() < 0.5:
        wanted = {"key": key, "operator": "In", "values": [value]}
        pool["spec"]["template"]["spec"]["requirements"].append(wanted)
    else:
        selector[key] = value
    pod = {
        "nodeSelector": selector,
        "terminationGracePeriodSeconds": 10,
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}],
    }
    spec = {
        "replicas": dice.randint(1, 5),
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata = {"name": ODD, "namespace": NAMESPACE}
    return [pool, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}]


def overlay(dice: random.Random) -> Document:
    """A price that only this cluster pays, or a resource that only its nodes have."""
    kind = dice.choice(TYPES)
    wanted = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [kind]}
    spec: Document = {"requirements": [wanted], "weight": 1}
    thing = {"example.com/thing": "2"}
    change: Document = dice.choice([{"priceAdjustment": "-40%"}, {"price": "0.05"}, {"capacity": thing}])
    metadata = {"name": "overlay"}
    return {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": metadata, "spec": spec | change}


def buffer(dice: random.Random) -> list[Document]:
    """Room that is kept free, and the template of its pods."""
    requests = {"cpu": f"{dice.choice([200, 900])}m", "memory": "512Mi"}
    containers = [{"name": "c", "image": "x", "resources": {"requests": requests}}]
    pod = {"spec": {"nodeSelector": {"type": "karpenter"}, "containers": containers}}
    named = {"name": BUFFER, "namespace": NAMESPACE, "uid": "buffer"}
    spec = {"podTemplateRef": {"name": BUFFER}, "replicas": dice.randint(1, 3)}
    return [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": named, "template": pod},
        {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": named, "spec": spec},
    ]
