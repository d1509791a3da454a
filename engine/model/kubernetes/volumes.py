"""PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes and VolumeAttachments as scheduling and draining
see them (S-152…S-159, D-155)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import NodeTerm
from kerf.engine.model.names import (
    AttachmentName,
    NamespaceName,
    NodeName,
    Plain,
    StorageClassName,
    VolumeClaimName,
    VolumeName,
)


class VolumeClaim(Struct, frozen=True, omit_defaults=True):
    """A PersistentVolumeClaim. `volume`: spec.volumeName; `bind_completed`: it carries the annotation."""

    namespace: NamespaceName
    name: VolumeClaimName
    volume: VolumeName = ""
    storage_class: StorageClassName = ""
    phase: Plain = "Pending"
    bind_completed: bool = False
    deleting: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Volume(Struct, frozen=True, omit_defaults=True):
    """A PersistentVolume. `driver`: its CSI driver, "" if it has none to count (S-158); `terms`: required node
    affinity; `local`: Local or HostPath."""

    name: VolumeName
    driver: Plain = ""
    terms: tuple[NodeTerm, ...] = ()
    local: bool = False
    deleting: int = 0


class StorageClass(Struct, frozen=True, omit_defaults=True):
    """`driver`: the provisioner, in-tree names translated (S-158); `topologies`: allowedTopologies, each as In;
    `default`: the API server gives it to claims that name no class."""

    name: StorageClassName
    driver: Plain = ""
    immediate: bool = False
    topologies: tuple[NodeTerm, ...] = ()
    default: bool = False


class CSINode(Struct, frozen=True, omit_defaults=True):
    """How many volumes a node takes, by driver; one without a limit is left out (S-159)."""

    name: NodeName
    limits: dict[Plain, int] = {}


class VolumeAttachment(Struct, frozen=True, omit_defaults=True):
    """A volume that is attached to a node, or on its way there or off. `volume`: the PersistentVolume's name, empty for
    an inline one."""

    name: AttachmentName
    node: NodeName
    volume: VolumeName = ""
    deleting: int = 0


class VolumeFacts(Struct, frozen=True):
    """All that is known of volumes: claims by namespace/name, volumes and classes by name, and per node how many
    volumes of a driver it takes (S-159; a driver without a limit is left out)."""

    claims: Mapping[str, VolumeClaim] = {}
    volumes: Mapping[str, Volume] = {}
    classes: Mapping[str, StorageClass] = {}
    limits: Mapping[str, Mapping[str, int]] = {}


IN_TREE = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""S-158."""
EBS = "ebs.csi.aws.com"
