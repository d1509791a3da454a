"""Volumes on a real API server (S-150 to S-161, L-199, W-rules). The test does what a CSI driver does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.controlplane.live import CLAIMS, DEFAULT, NODES, Live, nodes_of, on, pod, require
from tests.support.controlplane.volumes import mounts

pytestmark = pytest.mark.slow
ZONE, DRIVER = "topology.kubernetes.io/zone", "csi.example.com"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


def storage_class(name: str, *zones: str) -> dict[str, Any]:
    """Bound when a pod needs it; in some zones only."""
    made: dict[str, Any] = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if zones:
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return made


def claim(name: str, of: str, volume: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": of,
    }
    if volume:
        spec["volumeName"] = volume
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume(name: str, of: str, zone: str, bound: str) -> dict[str, Any]:
    """In one zone, for one claim."""
    term = {"matchExpressions": [require(ZONE, "In", zone)]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": of,
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            "claimRef": {"namespace": "default", "name": bound},
        },
    }


def provision(cluster: Live, name: str, of: str, zone: str) -> None:
    """As the driver's provisioner does when the scheduler has chosen a node."""
    path = f"{DEFAULT}/persistentvolumeclaims/{name}"
    cluster.until(lambda: "volume.kubernetes.io/selected-node" in cluster.plane.get(path)["metadata"]["annotations"])
    cluster.make(volume(f"pv-{name}", of, zone, name))


def zone_of(cluster: Live, pool: str) -> str:
    (node,) = cluster.nodes(pool)
    found: str = node["metadata"]["labels"][ZONE]
    return found


def test_nodes_are_launched_where_volumes_are_or_may_be(cluster: Live) -> None:
    """S-151 to S-156: a bound volume's zone, a class's allowedTopologies, an ephemeral volume's class."""
    ephemeral = {"spec": claim("x", "only-d")["spec"]}
    cluster.make(
        storage_class("anywhere"),
        storage_class("only-d", "test-zone-d"),
        volume("disk", "anywhere", "test-zone-c", "disk"),
        claim("disk", "anywhere", "disk"),
        claim("fresh", "only-d"),
        nodes_of("bound"),
        nodes_of("fresh"),
        nodes_of("ephemeral"),
        pod("disk", **mounts("disk"), **on("bound")),
        pod("fresh", **mounts("fresh"), **on("fresh")),
        pod("ephemeral", volumes=[{"name": "own", "ephemeral": {"volumeClaimTemplate": ephemeral}}], **on("ephemeral")),
    )
    cluster.running("disk")
    assert zone_of(cluster, "bound") == "test-zone-c"
    for pool, name in (("fresh", "fresh"), ("ephemeral", "ephemeral-own")):
        cluster.ready(pool, 1)
        assert zone_of(cluster, pool) == "test-zone-d"
        provision(cluster, name, "only-d", "test-zone-d")
    cluster.running("fresh")
    cluster.running("ephemeral")


def test_a_nodes_limit_of_volumes_sends_pods_to_another(cluster: Live) -> None:
    """S-159: CSINode's count; with room for all else on the first node."""
    cluster.make(storage_class("limited"), nodes_of("limited", require("karpenter.kwok.sh/instance-cpu", "In", "16")))
    for name in ("one", "two"):
        cluster.make(volume(name, "limited", "test-zone-a", name), claim(name, "limited", name))
    cluster.make(pod("one", **mounts("one"), **on("limited")))
    cluster.running("one")
    (first,) = cluster.ready("limited", 1)
    name = first["status"]["nodeName"]
    drivers = [{"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": 1}}]
    cluster.plane.request("DELETE", f"{CSI_NODES}/{name}")
    cluster.make(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": drivers},
        }
    )
    cluster.make(pod("two", **mounts("two"), **on("limited")))
    cluster.running("two")
    assert len(cluster.ready("limited", 2)) == 2


def test_an_instance_ends_after_its_volumes_are_detached(cluster: Live) -> None:
    """L-199, W-rules: the VolumeAttachment holds the node, its condition says so; the driver's detach lets it go."""
    cluster.make(
        storage_class("attached"),
        volume("attached", "attached", "test-zone-b", "attached"),
        claim("attached", "attached", "attached"),
        nodes_of("attached"),
        pod("attached", **mounts("attached"), **on("attached")),
    )
    cluster.running("attached")
    (owner,) = cluster.ready("attached", 1)
    node = owner["status"]["nodeName"]
    source = {"persistentVolumeName": "attached"}
    metadata = {"name": "attachment", "finalizers": ["example.com/driver"]}
    spec = {"attacher": DRIVER, "nodeName": node, "source": source}
    cluster.make({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": metadata, "spec": spec})
    path = f"{CLAIMS}/{owner['metadata']['name']}"
    cluster.delete(path)
    awaited = ("Unknown", "AwaitingVolumeDetachment")
    cluster.until(lambda: cluster.conditions(path).get("VolumesDetached") == awaited)
    assert cluster.conditions(path)["Drained"] == ("True", "Drained")
    uid = cluster.plane.get(f"{NODES}/{node}")["metadata"]["uid"]
    cluster.until(lambda: "AwaitingVolumeDetachment" in {reason for reason, _ in cluster.events(uid)})
    cluster.delete(f"{ATTACHMENTS}/attachment")
    cluster.patch(f"{ATTACHMENTS}/attachment", {"metadata": {"finalizers": None}})
    cluster.gone(path)
    cluster.gone(f"{NODES}/{node}")
