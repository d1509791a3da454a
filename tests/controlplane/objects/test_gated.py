"""The status of NodeOverlays and CapacityBuffers on a real API server (L-54, L-58 to L-61)."""

from __future__ import annotations

from typing import Any

from tests.support.controlplane.live import QUICK, Live, names, nodes_of, on, pod, require
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import Kerf, eventually, is_true, node_class, node_pool

TYPE = "node.kubernetes.io/instance-type"
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
        return {condition["type"]: condition["reason"] for condition in conditions}

    eventually(lambda: is_true(plane.get(f"{OVERLAYS}/b"), "Ready"), kerf=kerf)
    assert reasons(f"{OVERLAYS}/a") == {"ValidationSucceeded": "Conflict", "Ready": "UnhealthyDependents"}
    eventually(lambda: is_true(plane.get(f"{BUFFERS}/full"), "ReadyForProvisioning"), kerf=kerf)
    full = plane.get(f"{BUFFERS}/full")["status"]
    assert (full["replicas"], full["podTemplateRef"], full["podTemplateGeneration"]) == (2, {"name": "web"}, 1)
    for path in (f"{OVERLAYS}/b", f"{BUFFERS}/full"):
        assert {c["observedGeneration"] for c in plane.get(path)["status"]["conditions"]} == {1}  # L-67
    assert reasons(f"{BUFFERS}/empty")["ReadyForProvisioning"] == "PodTemplateNotFound"
    eventually(lambda: is_true(plane.get(f"{BUFFERS}/full"), "Provisioning"), kerf=kerf)
    assert kerf.stop() == 0
    kerf.verify()


def test_overlays_change_what_is_bought_and_buffers_hold_room(plane: ControlPlane, kerf: Kerf) -> None:
    """L-51, L-52, L-56, S-164, S-176 to S-182: a price makes a dear type the cheapest, a resource that no type has
    is bought, and a node is there before its pods."""
    kerf.flags = (*kerf.flags, *QUICK, "--feature-gates", "NodeOverlay=true,CapacityBuffer=true")
    live = Live(plane, kerf)
    dear = [require(TYPE, "In", "m-8x-amd64-linux")]
    widgets = [require(TYPE, "In", "c-4x-amd64-linux")]
    live.make(
        nodes_of("overlaid"),
        nodes_of("widgets"),
        nodes_of("buffered"),
        {**overlay("cheap", "0.001"), "spec": {"price": "0.001", "requirements": dear}},
        {**overlay("wide", "1"), "spec": {"capacity": {"example.com/widget": "2"}, "requirements": widgets}},
    )
    template = pod_template("held")
    template["template"]["spec"]["nodeSelector"] = on("buffered")["nodeSelector"]
    live.make(template)
    status, said = plane.request("POST", BUFFERS, buffer("held", "held"))
    assert status == 201, said
    asks = pod("widget", **on("widgets"))
    for amounts in ("requests", "limits"):
        asks["spec"]["containers"][0]["resources"].setdefault(amounts, {})["example.com/widget"] = "1"
    live.make(asks, pod("cheap", **on("overlaid")))
    kerf.start()
    live.running("cheap")
    (claim,) = live.ready("overlaid", 1)
    assert claim["metadata"]["labels"][TYPE] == "m-8x-amd64-linux"
    assert claim["metadata"]["annotations"]["karpenter.sh/price-overlay-applied"] == "true"
    live.running("widget")
    (claim,) = live.ready("widgets", 1)
    assert claim["metadata"]["labels"][TYPE] == "c-4x-amd64-linux"
    assert claim["metadata"]["annotations"]["karpenter.sh/capacity-overlay-applied"] == "true"
    live.until(lambda: live.claims("buffered"))
    before = names(live.ready("buffered", len(live.claims("buffered"))))
    live.until(lambda: live.conditions(f"{BUFFERS}/held").get("Provisioning", ("",))[0] == "True")
    live.make(pod("wanted", "1", **on("buffered")))
    live.running("wanted")
    assert before <= names(live.claims("buffered"))
    assert kerf.stop() == 0
    kerf.verify()
