"""The kinds of objects that kerf watches. To add a kind, declare it here, and add its struct and its decoder.

NodeClasses are not here, because they depend on the provider, and providers make observations of them.
"""

from __future__ import annotations

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kinds.kind import ServedKind, WatchedKind
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.devices import DeviceClass, ResourceClaim, ResourceSlice
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Pod, with_arrival
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.volumes import CSINode, StorageClass, Volume, VolumeAttachment, VolumeClaim
from kerf.engine.model.kubernetes.workloads import Workload, watched
from kerf.engine.model.manifests.karpenter.capacity_buffers import BufferWire, read_capacity_buffer
from kerf.engine.model.manifests.karpenter.nodeoverlays import OverlayWire, read_node_overlay
from kerf.engine.model.manifests.karpenter.nodepools import read_node_claim, read_node_pool
from kerf.engine.model.manifests.karpenter.nodepools_wire import NodeClaimWire, NodePoolWire
from kerf.engine.model.manifests.kubernetes.daemonsets import read_daemonset
from kerf.engine.model.manifests.kubernetes.devices import (
    read_device_class,
    read_resource_claim,
    read_resource_slice,
)
from kerf.engine.model.manifests.kubernetes.devices_wire import DeviceClassWire, ResourceClaimWire, SliceWire
from kerf.engine.model.manifests.kubernetes.namespaces import read_namespace
from kerf.engine.model.manifests.kubernetes.nodes import NodeWire, read_node
from kerf.engine.model.manifests.kubernetes.pod_disruption_budgets import BudgetWire, read_pod_disruption_budget
from kerf.engine.model.manifests.kubernetes.pod_templates import TemplateWire, read_pod_template
from kerf.engine.model.manifests.kubernetes.pods import read_pod
from kerf.engine.model.manifests.kubernetes.pods_wire import PodWire
from kerf.engine.model.manifests.kubernetes.services import ServiceWire, read_service
from kerf.engine.model.manifests.kubernetes.volumes import (
    AttachmentWire,
    ClaimWire,
    CSINodeWire,
    StorageClassWire,
    VolumeWire,
    read_attachment,
    read_csi_node,
    read_storage_class,
    read_volume,
    read_volume_claim,
)
from kerf.engine.model.manifests.kubernetes.workloads import (
    ControllerWire,
    WorkloadWire,
    read_replication_controller,
    read_workload,
)
from kerf.engine.model.manifests.wire import ObjectWire
from kerf.engine.model.settings import Settings


def _always_planned(settings: Settings, buffers: bool) -> bool:
    return True


def _devices_count(settings: Settings, buffers: bool = False) -> bool:
    return not settings.ignore_dra_requests


NAMESPACE = WatchedKind(
    name="namespace",
    struct=Namespace,
    served=(ServedKind("v1/Namespace", "namespaces", ObjectWire, read_namespace),),
    key="name",
    facts="namespaces",
    namespaced=False,
)
NODEPOOL = WatchedKind(
    name="nodepool",
    struct=NodePool,
    served=(ServedKind("karpenter.sh/v1/NodePool", "nodepools", NodePoolWire, read_node_pool),),
    key="name",
    facts="pools",
    namespaced=False,
    writes=(("", ("patch",)), ("status", ("patch",))),
)
DAEMONSET = WatchedKind(
    name="daemonset",
    struct=DaemonSet,
    served=(ServedKind("apps/v1/DaemonSet", "daemonsets", WorkloadWire, read_daemonset),),
    key="uid",
    facts="daemonsets",
    namespaced=True,
    digest_field="shape",
    spec=("shape",),
)
POD_DISRUPTION_BUDGET = WatchedKind(
    name="pdb",
    struct=PodDisruptionBudget,
    served=(
        ServedKind("policy/v1/PodDisruptionBudget", "poddisruptionbudgets", BudgetWire, read_pod_disruption_budget),
    ),
    key="uid",
    facts="pdbs",
    namespaced=True,
    spec=("selector", "max_unavailable", "min_available", "always_allow_unhealthy"),
)
STORAGE_CLASS = WatchedKind(
    name="storageclass",
    struct=StorageClass,
    served=(ServedKind("storage.k8s.io/v1/StorageClass", "storageclasses", StorageClassWire, read_storage_class),),
    key="name",
    facts="storage_classes",
    namespaced=False,
    planned_with=_always_planned,
    asked_for_by=lambda shape: bool(shape.volumes),
)
PERSISTENT_VOLUME = WatchedKind(
    name="pv",
    struct=Volume,
    served=(ServedKind("v1/PersistentVolume", "persistentvolumes", VolumeWire, read_volume),),
    key="name",
    facts="volumes",
    namespaced=False,
    planned_with=_always_planned,
    asked_for_by=lambda shape: bool(shape.volumes),
)
PERSISTENT_VOLUME_CLAIM = WatchedKind(
    name="pvc",
    struct=VolumeClaim,
    served=(ServedKind("v1/PersistentVolumeClaim", "persistentvolumeclaims", ClaimWire, read_volume_claim),),
    key="key",
    facts="volume_claims",
    namespaced=True,
    planned_with=_always_planned,
    asked_for_by=lambda shape: bool(shape.volumes),
)
CSI_NODE = WatchedKind(
    name="csinode",
    struct=CSINode,
    served=(ServedKind("storage.k8s.io/v1/CSINode", "csinodes", CSINodeWire, read_csi_node),),
    key="name",
    facts="csi_nodes",
    namespaced=False,
    planned_with=_always_planned,
    asked_for_by=lambda shape: bool(shape.volumes),
)
VOLUME_ATTACHMENT = WatchedKind(
    name="volumeattachment",
    struct=VolumeAttachment,
    served=(ServedKind("storage.k8s.io/v1/VolumeAttachment", "volumeattachments", AttachmentWire, read_attachment),),
    key="name",
    facts="attachments",
    namespaced=False,
)
SERVICE = WatchedKind(
    name="service",
    struct=Service,
    served=(ServedKind("v1/Service", "services", ServiceWire, read_service),),
    key="key",
    facts="services",
    namespaced=True,
    planned_with=lambda settings, buffers: bool(settings.default_spread),
    watched_with=lambda settings: bool(settings.default_spread),
)
WORKLOAD = WatchedKind(
    name="workload",
    struct=Workload,
    served=(
        ServedKind("apps/v1/Deployment", "deployments", WorkloadWire, read_workload),
        ServedKind("apps/v1/ReplicaSet", "replicasets", WorkloadWire, read_workload),
        ServedKind("apps/v1/StatefulSet", "statefulsets", WorkloadWire, read_workload),
        ServedKind("v1/ReplicationController", "replicationcontrollers", ControllerWire, read_replication_controller),
    ),
    key="key",
    facts="workloads",
    namespaced=True,
    planned_with=lambda settings, buffers: bool(settings.default_spread) or buffers,
    watched_with=lambda settings: bool(settings.default_spread) or settings.capacity_buffers,
    trim=watched,
    digest_field="shape",
)
POD_TEMPLATE = WatchedKind(
    name="podtemplate",
    struct=PodTemplate,
    served=(ServedKind("v1/PodTemplate", "podtemplates", TemplateWire, read_pod_template),),
    key="key",
    facts="pod_templates",
    namespaced=True,
    planned_with=lambda settings, buffers: buffers,
    watched_with=lambda settings: settings.capacity_buffers,
    digest_field="shape",
)
NODE_OVERLAY = WatchedKind(
    name="nodeoverlay",
    struct=NodeOverlay,
    served=(ServedKind("karpenter.sh/v1alpha1/NodeOverlay", "nodeoverlays", OverlayWire, read_node_overlay),),
    key="name",
    facts="overlays",
    namespaced=False,
    planned_with=lambda settings, buffers: settings.node_overlays,
    watched_with=lambda settings: settings.node_overlays,
    writes=(("status", ("patch",)),),
    announced=True,
)
CAPACITY_BUFFER = WatchedKind(
    name="capacitybuffer",
    struct=CapacityBuffer,
    served=(
        ServedKind("autoscaling.x-k8s.io/v1beta1/CapacityBuffer", "capacitybuffers", BufferWire, read_capacity_buffer),
    ),
    key="key",
    facts="buffers",
    namespaced=True,
    planned_with=lambda settings, buffers: settings.capacity_buffers,
    watched_with=lambda settings: settings.capacity_buffers,
    writes=(("status", ("patch",)),),
    announced=True,
)
DEVICE_CLASS = WatchedKind(
    name="deviceclass",
    struct=DeviceClass,
    served=(ServedKind("resource.k8s.io/v1/DeviceClass", "deviceclasses", DeviceClassWire, read_device_class),),
    key="name",
    facts="device_classes",
    namespaced=False,
    planned_with=_devices_count,
    asked_for_by=lambda shape: bool(shape.resource_claims),
    watched_with=_devices_count,
    optional=True,
)
RESOURCE_SLICE = WatchedKind(
    name="resourceslice",
    struct=ResourceSlice,
    served=(ServedKind("resource.k8s.io/v1/ResourceSlice", "resourceslices", SliceWire, read_resource_slice),),
    key="name",
    facts="resource_slices",
    namespaced=False,
    planned_with=_devices_count,
    asked_for_by=lambda shape: bool(shape.resource_claims),
    watched_with=_devices_count,
    optional=True,
)
RESOURCE_CLAIM = WatchedKind(
    name="resourceclaim",
    struct=ResourceClaim,
    served=(ServedKind("resource.k8s.io/v1/ResourceClaim", "resourceclaims", ResourceClaimWire, read_resource_claim),),
    key="key",
    facts="resource_claims",
    namespaced=True,
    planned_with=_devices_count,
    asked_for_by=lambda shape: bool(shape.resource_claims),
    watched_with=_devices_count,
    optional=True,
)
NODE = WatchedKind(
    name="node",
    struct=Node,
    served=(ServedKind("v1/Node", "nodes", NodeWire, read_node),),
    key="name",
    facts="nodes",
    namespaced=False,
    spec=("annotations", "taints"),
    writes=(("", ("patch", "delete")),),
)
POD = WatchedKind(
    name="pod",
    struct=Pod,
    served=(ServedKind("v1/Pod", "pods", PodWire, read_pod),),
    key="uid",
    facts="pods",
    namespaced=True,
    keep=with_arrival,
    digest_field="shape",
    writes=(("", ("delete",)), ("eviction", ("create",)), ("status", ("patch",))),  # KEP-5278: nominatedNodeName
)
NODECLAIM = WatchedKind(
    name="nodeclaim",
    struct=NodeClaimObject,
    served=(ServedKind("karpenter.sh/v1/NodeClaim", "nodeclaims", NodeClaimWire, read_node_claim),),
    key="name",
    facts="",  # kerf's own are projections of its aggregates: see kerf.engine.state.nodeclaims.adoption
    namespaced=False,
    writes=(("", ("create", "patch", "delete")), ("status", ("patch",))),
)

WATCHED: tuple[WatchedKind, ...] = (
    NAMESPACE, NODEPOOL, DAEMONSET, POD_DISRUPTION_BUDGET, STORAGE_CLASS, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM,
    CSI_NODE, VOLUME_ATTACHMENT, SERVICE, WORKLOAD, POD_TEMPLATE, NODE_OVERLAY, CAPACITY_BUFFER, DEVICE_CLASS,
    RESOURCE_SLICE, RESOURCE_CLAIM, NODE, POD, NODECLAIM,
)  # fmt: skip
"""The kinds in the order in which first lists are reported: what pods and nodes refer to comes before them."""
