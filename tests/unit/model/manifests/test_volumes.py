"""PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes and VolumeAttachments (S-152…S-159, D-155)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from kerf.engine.model.kubernetes.volumes import EBS, CSINode, StorageClass, Volume, VolumeAttachment, VolumeClaim
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.violations import ManifestError

STORAGE = "storage.k8s.io/v1"


def read(version: str, kind: str, metadata: dict[str, Any] | None = None, **fields: Any) -> Any:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", **(metadata or {})}, **fields}
    return decode_object(document).object


def test_a_claim_that_is_bound() -> None:
    claim = read(
        "v1", "PersistentVolumeClaim",
        {"namespace": "web", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        spec={"volumeName": "pv-1", "storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]},
        status={"phase": "Bound"},
    )  # fmt: skip
    assert claim == VolumeClaim("web", "x", "pv-1", "gp3", "Bound", bind_completed=True)


def test_a_new_claim_is_pending_and_in_the_default_namespace() -> None:
    metadata = {"deletionTimestamp": "1970-01-01T00:00:01Z"}
    assert read("v1", "PersistentVolumeClaim", metadata, spec={}) == VolumeClaim("default", "x", deleting=1_000)


def test_where_a_volume_may_be_used_and_its_driver() -> None:
    zone = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
    volume = read(
        "v1", "PersistentVolume", spec={"csi": {"driver": EBS, "volumeHandle": "v"}, "nodeAffinity": affinity}
    )
    assert volume == Volume("x", EBS, (NodeTerm((Expression(zone["key"], "In", ("a",)),)),))  # type: ignore[arg-type]


def test_s154_the_labels_of_a_volume_say_where_it_is() -> None:
    """kube-scheduler holds nodes to them, beside the node affinity, where there is one."""
    zones = Expression("topology.kubernetes.io/zone", "In", ("a", "b"))
    labels = {"labels": {zones.key: "b__a", "app": "db"}}
    assert read("v1", "PersistentVolume", labels, spec={}).terms == (NodeTerm((zones,)),)
    arch = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [arch]}, {"matchFields": []}]}}
    volume = read("v1", "PersistentVolume", labels, spec={"nodeAffinity": affinity})
    assert volume.terms == (NodeTerm((Expression("kubernetes.io/arch", "In", ("arm64",)), zones)),)


def test_s158_an_in_tree_ebs_volume_belongs_to_the_csi_driver_others_to_none() -> None:
    assert read("v1", "PersistentVolume", spec={"awsElasticBlockStore": {"volumeID": "v"}}) == Volume("x", EBS)
    assert read("v1", "PersistentVolume", spec={"nfs": {"server": "s"}}) == Volume("x")
    assert read("v1", "PersistentVolume", spec={"hostPath": {"path": "/"}}) == Volume("x", local=True)


def test_s158_a_class_with_an_in_tree_provisioner() -> None:
    """allowedTopologies without operators are read as In (S-154); a class that says nothing binds at once."""
    topology = [{"matchLabelExpressions": [{"key": "z", "values": ["a", "b"]}]}]
    given = read(
        STORAGE, "StorageClass", {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        provisioner="kubernetes.io/aws-ebs", allowedTopologies=topology,
    )  # fmt: skip
    terms = (NodeTerm((Expression("z", "In", ("a", "b")),)),)
    assert given == StorageClass("x", EBS, immediate=True, topologies=terms, default=True)
    assert not read(STORAGE, "StorageClass", provisioner=EBS, volumeBindingMode="WaitForFirstConsumer").immediate


def test_s159_limits_of_a_node() -> None:
    """No allocatable, no limit; allocatable without a count is 0."""
    drivers = [{"name": "a", "allocatable": {"count": 25}}, {"name": "b"}, {"name": "c", "allocatable": {}}]
    assert read(STORAGE, "CSINode", spec={"drivers": drivers}) == CSINode("x", {"a": 25, "c": 0})
    assert read(STORAGE, "CSINode", spec={"drivers": None}) == CSINode("x")


def test_d155_an_attachment_names_node_and_volume_unless_it_is_inline() -> None:
    source = {"persistentVolumeName": "pv-1"}
    found = read(STORAGE, "VolumeAttachment", spec={"attacher": EBS, "nodeName": "n1", "source": source})
    assert found == VolumeAttachment("x", "n1", "pv-1")
    inline: dict[str, Any] = {"inlineVolumeSpec": {"capacity": {}}}
    assert read(STORAGE, "VolumeAttachment", spec={"nodeName": "n1", "source": inline}) == VolumeAttachment("x", "n1")


@pytest.mark.parametrize("kind", ["StorageClass", "CSINode", "VolumeAttachment"])
def test_an_object_without_a_name_is_refused(kind: str) -> None:
    with pytest.raises(ManifestError) as refused:
        read(STORAGE, kind, {"name": ""})
    assert refused.value.code == "KERF304"


def test_an_unknown_binding_mode_is_refused() -> None:
    with pytest.raises(ManifestError) as refused:
        read(STORAGE, "StorageClass", volumeBindingMode="Later")
    assert refused.value.code == "KERF305"
