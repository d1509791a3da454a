"""Manifests for simulations."""

from __future__ import annotations

from typing import Any

from tests.support.simulation.run import documents

MINUTE = 60_000


def deployment(name: str, replicas: int, memory: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"memory": memory}}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }  # fmt: skip


def pool_and_class() -> list[Any]:
    return documents("workshop/nodepool.yaml", "workshop/ec2nodeclass.yaml")


def of_cpu(name: str, replicas: int, cpu: int, **rules: Any) -> dict[str, Any]:
    """A Deployment whose pods ask for this much CPU (millicores). `rules`: more of the pods' spec."""
    labels = {"app": name}
    requests = {"cpu": f"{cpu}m", "memory": "256Mi"}
    pod = {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}], **rules}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "other"},
            "spec": spec}  # fmt: skip
