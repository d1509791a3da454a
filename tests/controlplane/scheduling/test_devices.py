"""Pods with ResourceClaims on a real control plane: its scheduler allocates, the test publishes what a driver would.

S-194 to S-199, S-160, L-175; and the record verifies.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
    eventually,
    is_true,
    node_claims,
    node_class,
    node_pool,
    running_pods,
)

DRIVER = "gpu.example.com"
GPUS = 4
DRA = "/apis/resource.k8s.io/v1"
pytestmark = pytest.mark.slow


def devices() -> list[dict[str, Any]]:
    return [{"name": f"gpu-{number}", "attributes": {"model": {"string": "a"}}} for number in range(GPUS)]


def catalogue() -> list[dict[str, Any]]:
    """A cheap type without devices, and one with GPUs."""

    def offering(price: float) -> dict[str, Any]:
        labels = {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "test-zone-a"}
        requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
        return {"price": price, "available": True, "requirements": requirements}

    plain = {
        "name": "plain", "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": "8", "memory": "32Gi"}, "offerings": [offering(0.1)],
    }  # fmt: skip
    pool = {"name": "gpus", "generation": 1, "resourceSliceCount": 1}
    slices = [{"driver": DRIVER, "pool": pool, "devices": devices()}]
    return [plain, {**plain, "name": "with-gpus", "offerings": [offering(1.0)], "resourceSlices": slices}]


def device_class() -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
            "spec": {"selectors": [selector]}}  # fmt: skip


def template() -> dict[str, Any]:
    """Two GPUs of one model for each pod."""
    selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "a"'}}
    exactly = {"deviceClassName": "gpu", "count": 2, "selectors": [selector]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "two", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}},
    }


def trainers(replicas: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": "100m"}, "claims": [{"name": "gpus"}]}
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "pause", "resources": resources}],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "train"}},
            "template": {"metadata": {"labels": {"app": "train"}}, "spec": spec},
        },
    }


def create(plane: ControlPlane, path: str, document: dict[str, Any]) -> None:
    status, found = plane.request("POST", f"{DRA}/{path}", document)
    assert status == 201, found


def publish(plane: ControlPlane) -> None:
    """What the driver does on every node of its type that has said nothing yet."""
    known = {resource_slice["spec"].get("nodeName") for resource_slice in plane.items(f"{DRA}/resourceslices")}
    for node in plane.items("/api/v1/nodes"):
        metadata = node["metadata"]
        if metadata["labels"]["node.kubernetes.io/instance-type"] != "with-gpus" or metadata["name"] in known:
            continue
        owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
        pool = {"name": metadata["name"], "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": metadata["name"], "pool": pool, "devices": devices()}
        made = {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec,
            "metadata": {"name": f"{metadata['name']}-gpus", "ownerReferences": [owner]},
        }  # fmt: skip
        create(plane, "resourceslices", made)


def initialized_because(claim: dict[str, Any]) -> str:
    conditions = claim.get("status", {}).get("conditions", [])
    return next((condition["reason"] for condition in conditions if condition["type"] == "Initialized"), "")


def test_pods_with_claims_get_the_nodes_that_their_devices_are_on(
    plane: ControlPlane, kerf: Kerf, tmp_path: Path
) -> None:
    types = tmp_path / "types.json"
    types.write_text(json.dumps(catalogue()))
    kerf.flags = (*kerf.flags, "--instance-types", str(types), "--ignore-dra-requests", "false")
    for document in (node_class(), node_pool(disruption={"consolidateAfter": "0s"})):
        plane.apply(document)
    create(plane, "deviceclasses", device_class())
    create(plane, "namespaces/default/resourceclaimtemplates", template())
    plane.apply(trainers(3))
    kerf.start()

    # two nodes are launched for six GPUs, and wait for what their driver publishes
    waiting = "DRADriverPoolsNotPublished"
    eventually(
        lambda: [initialized_because(node_claim) for node_claim in node_claims(plane)] == [waiting] * 2, kerf=kerf
    )
    drivers = "karpenter.sh/requested-dra-drivers"
    assert [node_claim["metadata"]["annotations"][drivers] for node_claim in node_claims(plane)] == [DRIVER] * 2
    plane.request("POST", "/api/v1/namespaces/default/pods", plain_pod())  # a pass that looks at all of them again
    eventually(lambda: len(running_pods(plane)) == 1, kerf=kerf)
    assert len(node_claims(plane)) == 2
    assert {initialized_because(node_claim) for node_claim in node_claims(plane)} == {waiting}

    # the driver publishes: the nodes are initialized, the scheduler allocates, the pods run
    publish(plane)
    eventually(lambda: len(running_pods(plane)) == 4, kerf=kerf)
    eventually(lambda: all(is_true(node_claim, "Ready") for node_claim in node_claims(plane)), kerf=kerf)
    assert len(node_claims(plane)) == 2
    allocated = [claim["status"]["allocation"] for claim in plane.items(f"{DRA}/resourceclaims")]
    results = [(one["pool"], one["device"]) for allocation in allocated for one in allocation["devices"]["results"]]
    assert len(results) == len(set(results)) == 6

    # two pods are left: their devices fit on one node
    path = "/apis/apps/v1/namespaces/default/deployments/train"
    plane.request("PATCH", path, {"spec": {"replicas": 2}}, "application/merge-patch+json")
    plane.request("DELETE", "/api/v1/namespaces/default/pods/plain")
    eventually(lambda: len(node_claims(plane)) == 1 and len(running_pods(plane)) == 2, seconds=120, kerf=kerf)
    eventually(lambda: len(plane.items(f"{DRA}/resourceslices")) == 1, seconds=120)
    assert kerf.stop() == 0
    assert "same" in kerf.verify()


def plain_pod() -> dict[str, Any]:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }  # fmt: skip
