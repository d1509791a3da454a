"""The status of NodeOverlays and CapacityBuffers on a real API server (L-54, L-58 to L-61)."""

from __future__ import annotations

from typing import Any

from tests.controlplane.plane import ControlPlane
from tests.controlplane.running import Kerf, eventually, is_true, node_class, node_pool

OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers"


def overlay(name: str, price: str) -> dict[str, Any]:
    spec = {"price": price, "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}
    return {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec}


def buffer(name: str, template: str) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podTemplateRef": {"name": template}, "replicas": 2},
    }


def pod_template(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
    }


def test_overlays_and_buffers_say_what_became_of_them(plane: ControlPlane, kerf: Kerf) -> None:
    plane.apply(node_class())
    plane.apply(node_pool())
    for path, document in (
        (OVERLAYS, overlay("a", "1.5")),
        (OVERLAYS, overlay("b", "2.5")),
        (BUFFERS, buffer("full", "web")),
        (BUFFERS, buffer("empty", "nowhere")),
        ("/api/v1/namespaces/default/podtemplates", pod_template("web")),
    ):
        status, found = plane.request("POST", path, document)
        assert status == 201, found
    kerf.flags = (*kerf.flags, "--feature-gates", "NodeOverlay=true,CapacityBuffer=true")
    kerf.start()

    def reasons(path: str) -> dict[str, str]:
        conditions = plane.get(path).get("status", {}).get("conditions", [])
        return {each["type"]: each["reason"] for each in conditions}

    eventually(lambda: is_true(plane.get(f"{OVERLAYS}/b"), "Ready"), kerf=kerf)
    assert reasons(f"{OVERLAYS}/a") == {"ValidationSucceeded": "Conflict", "Ready": "UnhealthyDependents"}
    eventually(lambda: is_true(plane.get(f"{BUFFERS}/full"), "ReadyForProvisioning"), kerf=kerf)
    assert plane.get(f"{BUFFERS}/full")["status"]["replicas"] == 2
    assert reasons(f"{BUFFERS}/empty")["ReadyForProvisioning"] == "PodTemplateNotFound"
    eventually(lambda: is_true(plane.get(f"{BUFFERS}/full"), "Provisioning"), kerf=kerf)
    assert kerf.stop() == 0
    kerf.verify()
