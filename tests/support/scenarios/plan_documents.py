"""Scenario documents for `kerf plan`, and their parts."""

from __future__ import annotations

from typing import Any

from kerf.engine.model import labels as lbl

NOW = "2026-01-15T12:00:00Z"


def instance_type(name: str, cpu: int, **fields: Any) -> dict[str, Any]:
    zones = {"z1": "id-1", "z2": "id-2"}
    return {
        "name": name,
        "capacity": {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": "20"},
        "overhead": {
            "kubeReserved": {"cpu": "50m", "memory": "100Mi"},
            "systemReserved": {"cpu": "30m"},
            "evictionThreshold": {"memory": "100Mi"},
        },
        "requirements": {
            lbl.INSTANCE_TYPE: [name],
            lbl.ARCH: ["amd64"],
            lbl.OS: ["linux"],
            lbl.ZONE: list(zones),
            lbl.ZONE_ID: list(zones.values()),
            lbl.CAPACITY_TYPE: ["on-demand", "spot"],
            "karpenter.k8s.aws/instance-gpu-name": [],
        },
        "offerings": [
            {"zone": zone, "zoneId": zone_id, "capacityType": kind, "price": cpu * price}
            for kind, price in (("on-demand", 0.1), ("spot", 0.04))
            for zone, zone_id in zones.items()
        ],
        **fields,
    }


CATALOGUES = {"small": [instance_type("a", 2), instance_type("b", 4)]}


def pod(name: str, cpu: str = "500m", spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **(spec or {})}, **fields}


def pool(name: str = "default", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}
    template["spec"]["requirements"] = spec.pop("requirements", [])
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def scenario(**fields: Any) -> dict[str, Any]:
    base = {"name": "s", "family": "f", "now": NOW, "instanceTypes": {"catalogue": "small"}, "nodePools": [pool()]}
    return {**base, "pods": [], **fields}


def node(name: str, *, labels: dict[str, str] | None = None, cpu: str = "4", **status: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {lbl.NODEPOOL: "default", lbl.INSTANCE_TYPE: "b", **(labels or {})}},
        "spec": {"providerID": f"aws:///z1/{name}"},
        "status": {"capacity": amounts, "allocatable": amounts, **status},
    }
