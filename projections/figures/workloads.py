"""Name the workload of a pod, as people know it."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Pod

_OF_DEPLOYMENT = "apps/v1/ReplicaSet"


def workload_of(pod: Pod) -> str:
    """Return namespace/name of what made the pod. A Deployment's ReplicaSet is named by the Deployment; a pod without
    an owner, by itself."""
    if pod.owner is None:
        return pod.key
    name = pod.owner.name
    if pod.owner.kind == _OF_DEPLOYMENT and "-" in name:
        name = name.rpartition("-")[0]
    return f"{pod.namespace}/{name}"
