"""A Node and a NodeClaim as manifests."""

from __future__ import annotations

from typing import Any

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n-1",
        "uid": "u",
        "creationTimestamp": "2026-01-15T11:00:00Z",
        "labels": {"a": "b"},
        "annotations": {"karpenter.sh/do-not-disrupt": "true", "volumes.kubernetes.io/x": "y"},
    },
    "spec": {"providerID": "aws:///us-west-2a/i-1", "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "x"}]},
    "status": {
        "capacity": {"cpu": "2", "memory": "8Gi", "pods": 29},
        "allocatable": {"cpu": "1930m", "memory": "6903Mi", "pods": "29"},
        "conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-15T11:00:35Z"},
        ],
    },
}
CLAIM: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "default-x7k", "labels": {"karpenter.sh/nodepool": "default"}},
    "spec": {
        "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["default"], "minValues": 1}],
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}],
        "resources": {"requests": {"cpu": "100m"}},
        "terminationGracePeriod": "10m",
        "expireAfter": "Never",
    },
    "status": {
        "providerID": "aws:///us-west-2a/i-1",
        "nodeName": "n-1",
        "imageID": "ami-1",
        "capacity": {"cpu": "2"},
        "allocatable": {"cpu": "1930m"},
        "lastPodEventTime": "2026-01-15T11:00:00Z",
        "conditions": [
            {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": "2026-01-15T11:00:35Z"}
        ],
    },
}
