"""The objects of a small EKS cluster in which Karpenter acts, as an API server lists them."""

from __future__ import annotations

from typing import Any

from tests.support.servers.fake_kubernetes import Document, FakeApi

ZONE = "us-west-2a"
_TIME = "2026-01-01T00:00:00Z"
_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
_AMOUNTS = {"cpu": "1930m", "memory": "7220Mi", "pods": "29", "ephemeral-storage": "18Gi"}
PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "NodeClaim": "/apis/karpenter.sh/v1/nodeclaims",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "Deployment": "/apis/apps/v1/deployments",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
}


def small_cluster() -> list[Document]:
    """Two nodes, one of which is empty; two pods that run, and one that fits nowhere yet."""
    return [
        node_class(),
        node_pool(),
        *node("ip-10-0-0-1", "default-full"),
        *node("ip-10-0-0-2", "default-empty"),
        _workload("ReplicaSet", "web-1", 3),
        _pod("web-1-a", "1", "ip-10-0-0-1"),
        _pod("web-1-b", "800m", "ip-10-0-0-1"),
        _pod("web-1-c", "3", ""),
    ]


def served(documents: list[Document], *, forbidden: tuple[str, ...] = ()) -> FakeApi:
    """An API server with these objects. Lists of `forbidden` kinds are refused; other kinds are not served."""
    api = FakeApi()
    for kind, path in PATHS.items():
        items = [document for document in documents if document["kind"] == kind]
        answer = {"metadata": {"resourceVersion": "7"}, "items": items}
        api.answers[f"GET {path}"] = [(200, answer)]
        if kind in forbidden:
            api.answers[f"GET {path}"] = [(403, {"kind": "Status", "message": "no", "code": 403})]
    api.answers["GET /api/v1/namespaces/kube-system"] = [(200, {"metadata": {"uid": "uid-of-the-cluster"}})]
    return api


def node_class(zone: str = ZONE) -> Document:
    subnet = {"id": "subnet-1", "zone": zone, "zoneID": "usw2-az1"} if zone else None
    status = {
        "subnets": [subnet] if subnet else [],
        "securityGroups": [{"id": "sg-1", "name": "nodes"}],
        "amis": [
            {"id": "ami-1", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}
        ],
        "conditions": [_condition("Ready")],
    }
    spec = {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "KarpenterNodeRole",
        "userData": "echo hush-in-user-data",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    }
    return _object("karpenter.k8s.aws/v1", "EC2NodeClass", "default", spec=spec, status=status)


def node_pool(**spec: Any) -> Document:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]},
    ]
    template = {"spec": {"requirements": requirements, "nodeClassRef": _REF, "expireAfter": "Never"}}
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"}
    return _object(
        "karpenter.sh/v1", "NodePool", "default", spec={"template": template, "disruption": disruption, **spec}
    )


def node(name: str, claim: str) -> list[Document]:
    """A node of Karpenter's that is in service since long, and its NodeClaim."""
    labels = {
        "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": ZONE,
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    }  # fmt: skip
    marks = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "kubernetes.io/hostname": name}
    provider = f"aws:///{ZONE}/i-{claim}"
    ready = {**_condition("Ready"), "reason": "KubeletReady"}
    amounts = {"capacity": {**_AMOUNTS, "cpu": "2", "memory": "7800Mi"}, "allocatable": _AMOUNTS}
    conditions = [_condition(kind) for kind in ("Launched", "Registered", "Initialized")]
    status = {"providerID": provider, "nodeName": name, "imageID": "ami-1", "conditions": conditions, **amounts}
    return [
        _object(
            "karpenter.sh/v1", "NodeClaim", claim, labels=labels,
            spec={"requirements": [], "nodeClassRef": _REF, "expireAfter": "Never"}, status=status,
        ),
        _object(
            "v1", "Node", name, labels={**labels, **marks}, spec={"providerID": provider},
            status={**amounts, "conditions": [ready]},
        ),
    ]  # fmt: skip


def _pod(name: str, cpu: str, on: str) -> Document:
    container = {
        "name": "c", "image": "hush-image", "env": [{"name": "SECRET", "value": "hush-in-environment"}],
        "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}},
    }  # fmt: skip
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    found = _object(
        "v1", "Pod", name, namespace="default", labels={"app": "web"},
        spec={"containers": [container], **({"nodeName": on} if on else {})},
        status={"phase": "Running"} if on else {"phase": "Pending", "conditions": waits},
    )  # fmt: skip
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "uid-web-1", "controller": True}
    found["metadata"]["ownerReferences"] = [owner]
    return found


def _workload(kind: str, name: str, replicas: int) -> Document:
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return _object("apps/v1", kind, name, namespace="default", spec=spec)


def _object(api: str, kind: str, name: str, *, namespace: str = "", labels: Any = None, **parts: Any) -> Document:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": _TIME, "resourceVersion": "5"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": {**metadata, "labels": labels or {}}, **parts}


def _condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": _TIME}
