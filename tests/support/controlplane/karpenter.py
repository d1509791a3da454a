"""A stand-in for Karpenter: NodeClaims, their status and their Nodes, made by hand as it makes them."""

from __future__ import annotations

from typing import Any

from tests.support.controlplane.plane import ControlPlane

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_MERGE = "application/merge-patch+json"
_TIME = "2026-01-01T00:00:00Z"


class Karpenter:
    """Acts when told to, with the plane's own rights and not with kerf's."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def launch(self, name: str, instance_type: str, cpu: str, price: str) -> None:
        """A NodeClaim of the NodePool `default` through all its steps, and its Node, which KWOK runs."""
        labels = {
            "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "on-demand",
            "node.kubernetes.io/instance-type": instance_type, "topology.kubernetes.io/zone": "test-zone-a",
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        }  # fmt: skip
        ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
        self._plane.apply(
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {"name": name, "labels": labels, "finalizers": ["karpenter.sh/termination"]},
                "spec": {"requirements": [], "nodeClassRef": ref, "expireAfter": "720h"},
            }
        )
        amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110", "ephemeral-storage": "20Gi"}
        self._status(name, ["Launched"], amounts)
        marks = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "kubernetes.io/hostname": name}
        self._plane.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {**labels, **marks, "eks-node-viewer/instance-price": price},
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                },
                "spec": {"providerID": f"kwok://{name}"},
                "status": {"capacity": amounts, "allocatable": amounts},
            }
        )
        self._status(name, ["Launched", "Registered", "Initialized"], amounts)

    def remove(self, name: str, reason: str) -> None:
        """For a reason of DisruptionReason (L-75): the condition, the deletion, and the end of both objects."""
        conditions = self._plane.get(f"{CLAIMS}/{name}")["status"]["conditions"]
        self._patch(f"{name}/status", {"status": {"conditions": [*conditions, _condition("DisruptionReason", reason)]}})
        self._plane.request("DELETE", f"{CLAIMS}/{name}")
        self._plane.request("DELETE", f"/api/v1/nodes/{name}")
        self._patch(name, {"metadata": {"finalizers": None}})

    def _status(self, name: str, true: list[str], amounts: dict[str, str]) -> None:
        status: dict[str, Any] = {"providerID": f"kwok://{name}", "capacity": amounts, "allocatable": amounts}
        if "Registered" in true:
            status["nodeName"] = name
        self._patch(f"{name}/status", {"status": {**status, "conditions": [_condition(kind, kind) for kind in true]}})

    def _patch(self, path: str, body: object) -> None:
        status, found = self._plane.request("PATCH", f"{CLAIMS}/{path}", body, _MERGE)
        assert status == 200, found


def _condition(kind: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": reason, "message": reason, "lastTransitionTime": _TIME}
