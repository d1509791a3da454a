"""PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes and VolumeAttachments as scheduling and draining
see them (S-152…S-159, D-155)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import NodeTerm
from kerf.engine.model.names import (
    AttachmentName,
    DriverName,
    NamespaceName,
    NodeName,
    Plain,
    StorageClassName,
    VolumeClaimName,
    VolumeName,
)


class VolumeClaim(Struct, frozen=True, omit_defaults=True):
    """A PersistentVolumeClaim. `volume` is spec.volumeName; `bind_completed` says that it has that annotation."""

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
    """A PersistentVolume. `driver` is its CSI driver, "" if it has none that counts (S-158).

    `terms` is its required node affinity; `local` means Local or HostPath.
    """

    name: VolumeName
    driver: DriverName = ""
    terms: tuple[NodeTerm, ...] = ()
    local: bool = False
    deleting: int = 0


class StorageClass(Struct, frozen=True, omit_defaults=True):
    """A StorageClass. `driver` is the provisioner, with in-tree names translated (S-158).

    `topologies` are allowedTopologies, each as In. `default` means that the API server gives it to claims that name no
    class.
    """

    name: StorageClassName
    driver: DriverName = ""
    immediate: bool = False
    topologies: tuple[NodeTerm, ...] = ()
    default: bool = False


class CSINode(Struct, frozen=True, omit_defaults=True):
    """How many volumes a node takes, by driver. A driver without a limit is left out (S-159)."""

    name: NodeName
    limits: dict[DriverName, int] = {}


class VolumeAttachment(Struct, frozen=True, omit_defaults=True):
    """A volume that is attached to a node, or is being attached or detached.

    `volume` is the PersistentVolume's name, empty for an inline volume.
    """

    name: AttachmentName
    node: NodeName
    volume: VolumeName = ""
    deleting: int = 0


class VolumeFacts(Struct, frozen=True):
    """All that is known of volumes: claims by namespace/name, volumes and classes by name.

    Also how many volumes of a driver each node takes; a driver without a limit is left out (S-159). `hosts`: the host
    names of all Nodes, where a volume is local; None if nobody says.
    """

    claims: Mapping[str, VolumeClaim] = {}
    volumes: Mapping[str, Volume] = {}
    classes: Mapping[str, StorageClass] = {}
    limits: Mapping[str, Mapping[str, int]] = {}
    hosts: frozenset[str] | None = None


IN_TREE = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""In-tree provisioners and the CSI drivers that replace them (S-158)."""
EBS = "ebs.csi.aws.com"
