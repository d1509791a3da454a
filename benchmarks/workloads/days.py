"""A day of a small company on three NodePools, as somebody writes it who tries kerf for the first time; and a day of a
large cluster."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

HOURS = (6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22)
CURVE = (0.25, 0.5, 0.8, 1.0, 1.0, 0.9, 0.75, 0.9, 1.0, 1.0, 0.9, 0.75, 0.6, 0.5, 0.3, 0.15)
"""How busy each of `HOURS` is, as a part of the busiest."""
ZONE_SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ]
}
STRICT_SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    ]
}


def newcomers_day() -> list[Document]:
    """Three NodePools (general, spot batch, gpu), ten Deployments that follow a day's curve, batch jobs by night, GPUs
    in office hours, two roll-outs, and interruptions of spot instances."""
    busy = {"web": 40, "api": 30, "auth": 12, "search": 16, "checkout": 10}
    workloads = [
        deployment("web", 10, "500m", "1Gi", ZONE_SPREAD),
        deployment("api", 8, "1", "2Gi", STRICT_SPREAD),
        deployment("auth", 3, "250m", "512Mi", ZONE_SPREAD),
        deployment("search", 4, "2", "14Gi"),
        deployment("checkout", 3, "750m", "1536Mi", _apart("checkout", required=False)),
        deployment("cache", 3, "500m", "6Gi", _apart("cache", required=True)),
        deployment("mail", 2, "100m", "256Mi"),
        deployment("nightly", 0, "3", "6Gi", _tolerates("dedicated", "batch")),
        deployment("reports", 0, "1500m", "10Gi", _tolerates("dedicated", "batch")),
        deployment("inference", 0, "3", "12Gi", _tolerates("nvidia.com/gpu"), gpus=1),
    ]
    by_name = {workload["metadata"]["name"]: workload for workload in workloads}
    actions = [
        scale(f"{hour}h{minute}m", name, max(1, round(most * share)))
        for hour, share in zip(HOURS, CURVE, strict=True)
        for minute, (name, most) in enumerate(busy.items())
    ]
    for hour, nightly, reports in ((1, 16, 0), (2, 24, 6), (3, 8, 12), (4, 0, 4), (5, 0, 0), (21, 12, 8), (23, 0, 0)):
        actions += [scale(f"{hour}h20m", "nightly", nightly), scale(f"{hour}h25m", "reports", reports)]
    actions += [scale(f"{hour}h30m", "inference", count) for hour, count in ((9, 2), (11, 4), (13, 2), (17, 0))]
    actions += [
        {"at": "10h40m", "action": "apply", "object": rolled_out(by_name["api"], 30)},
        {"at": "15h40m", "action": "apply", "object": rolled_out(by_name["web"], 40)},
        {"at": "11h10m", "action": "interrupt", "capacityType": "spot", "count": 2},
        {"at": "16h10m", "action": "interrupt", "capacityType": "spot"},
        {"at": "24h", "action": "scale", "name": "mail", "replicas": 2},
    ]
    return [
        node_pool("general", ["spot", "on-demand"], ["c", "m", "r"]),
        node_pool("batch", ["spot"], ["c", "m", "r"], taint={"key": "dedicated", "value": "batch"}),
        node_pool("gpu", ["on-demand"], ["g", "p"], taint={"key": "nvidia.com/gpu"}, limits={"nvidia.com/gpu": "4"}),
        node_class(),
        daemon_set("log-agent", "50m", "64Mi"),
        daemon_set("node-exporter", "20m", "32Mi"),
        *workloads,
        *(disruption_budget(name) for name in ("web", "api", "search")),
        timeline(actions),
    ]


def large_day(workloads: int = 40, pods: int = 5_000) -> list[Document]:
    """One NodePool for all of EC2's types, and Deployments of so many pods together by day; a third of them by night.
    For them some 1,200 nodes are bought, none of which has over 8 CPUs."""
    sizes = [("500m", "1Gi"), ("1", "2Gi"), ("250m", "1Gi"), ("2", "8Gi"), ("750m", "3Gi"), ("1500m", "12Gi")]
    most = pods // workloads
    made = [
        deployment(
            f"app-{number:02}", most // 3, *sizes[number % len(sizes)], (ZONE_SPREAD, STRICT_SPREAD, {})[number % 3]
        )
        for number in range(workloads)
    ]
    actions = [
        scale(f"{hour}h{number % 20}m", workload["metadata"]["name"], max(most // 3, round(most * share)))
        for hour, share in zip(HOURS, CURVE, strict=True)
        for number, workload in enumerate(made)
    ]
    actions.append({"at": "24h", "action": "scale", "name": "app-00", "replicas": most // 3})
    pool = node_pool("default", ["on-demand"], None, limits={"cpu": "20000"}, most_cpu="9")
    return [pool, node_class(), daemon_set("log-agent", "50m", "64Mi"), *made, timeline(actions)]


# ── documents ──────────────────────────────────────────────────────────────────────────────────────────────────────


def node_pool(
    name: str,
    capacity_types: list[str],
    categories: list[str] | None,
    taint: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    most_cpu: str = "",
) -> Document:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    ]
    if categories is not None:
        category = {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": categories}
        generation = {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]}
        requirements += [category, generation] if "g" not in categories else [category]
    if most_cpu:
        requirements.append({"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": [most_cpu]})
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template: dict[str, Any] = {"nodeClassRef": ref, "requirements": requirements, "expireAfter": "720h"}
    if taint is not None:
        template["taints"] = [{**taint, "effect": "NoSchedule"}]
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"}
    spec = {"template": {"spec": template}, "limits": limits or {"cpu": "1000"}, "disruption": disruption}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def node_class() -> Document:
    terms = [{"tags": {"karpenter.sh/discovery": "company"}}]
    spec = {
        "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "KarpenterNodeRole-company",
        "subnetSelectorTerms": terms, "securityGroupSelectorTerms": terms,
    }  # fmt: skip
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": spec,
    }


def deployment(
    name: str, replicas: int, cpu: str, memory: str, more: dict[str, Any] | None = None, gpus: int = 0
) -> Document:
    labels = {"app": name}
    spec: dict[str, Any] = {"containers": [_container(name, cpu, memory, gpus)], **(more or {})}
    if "topologySpreadConstraints" in spec:
        selector = {"matchLabels": labels}
        spec["topologySpreadConstraints"] = [
            {**constraint, "labelSelector": selector} for constraint in spec["topologySpreadConstraints"]
        ]
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def rolled_out(document: Document, replicas: int) -> Document:
    """The Deployment with a new image, so that all its pods are replaced."""
    template = document["spec"]["template"]
    labels = {**template["metadata"]["labels"], "release": "2"}
    new = {**template, "metadata": {"labels": labels}}
    return {**document, "spec": {**document["spec"], "replicas": replicas, "template": new}}


def daemon_set(name: str, cpu: str, memory: str) -> Document:
    labels = {"app": name}
    spec = {"tolerations": [{"operator": "Exists"}], "containers": [_container(name, cpu, memory)]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def disruption_budget(name: str) -> Document:
    spec = {"maxUnavailable": "20%", "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def timeline(actions: list[dict[str, Any]]) -> Document:
    spec = {"actions": actions}
    return {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "a-day"}, "spec": spec}


def scale(at: str, name: str, replicas: int) -> dict[str, Any]:
    return {"at": at, "action": "scale", "name": name, "replicas": replicas}


def _container(name: str, cpu: str, memory: str, gpus: int = 0) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"name": name, "image": f"registry.example/{name}:1", "resources": {"requests": requests, "limits": limits}}


def _apart(name: str, *, required: bool) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    if required:
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    weighted = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


def _tolerates(key: str, value: str = "") -> dict[str, Any]:
    by_value = {"key": key, "operator": "Equal", "value": value} if value else {"key": key, "operator": "Exists"}
    return {"tolerations": [{**by_value, "effect": "NoSchedule"}]}
