"""What is watched: for each kind its path, how its objects are read, and what they are called in the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.workloads import Workload, watched
from kerf.engine.model.settings import Settings
from kerf.engine.state.state import Facts

Key = Callable[[Struct], str]
Known = Callable[[Facts], Mapping[str, Struct]]


class Resource(Struct, frozen=True):
    """One kind. `kind` as in ObjectGone; `api` as in kerf.engine.model.manifests.decode.KINDS; `known` is what the
    record knows of it, key → object."""

    kind: str
    api: str
    path: str
    key: Key
    known: Known
    trim: Callable[[Struct], Struct] | None = None  # to what goes into the record
    page: int = 500
    optional: bool = False  # an API server that does not serve it has none


def _attribute(name: str) -> Key:
    def key(item: Struct) -> str:
        found: str = getattr(item, name)
        return found

    return key


_UID, _NAME, _KEY = _attribute("uid"), _attribute("name"), _attribute("key")


def _core(kind: str, api: str, key: Key, known: Known) -> Resource:
    return Resource(kind, f"v1/{api}", f"/api/v1/{api.lower()}s", key, known)


def _of_group(kind: str, api: str, plural: str, key: Key, known: Known) -> Resource:
    return Resource(kind, api, f"/apis/{api.rpartition('/')[0]}/{plural}", key, known)


def _device_kind(kind: str, plural: str, key: Key, known: Known) -> Resource:
    return replace(_of_group(kind.lower(), f"resource.k8s.io/v1/{kind}", plural, key, known), optional=True)


def _workload(api: str, plural: str) -> Resource:
    root = "/apis/apps/v1" if "/" in api.rpartition("/")[0] else "/api/v1"

    def known(facts: Facts) -> Mapping[str, Workload]:
        return {key: each for key, each in facts.workloads.items() if each.kind == api}

    return Resource("workload", api, f"{root}/{plural}", _KEY, known, _trimmed)


def _trimmed(item: Struct) -> Struct:
    assert isinstance(item, Workload)
    return watched(item)


def _nothing(facts: Facts) -> Mapping[str, Struct]:
    return {}


def _node_classes(api: str, plural: str) -> Resource:
    group, kind = api.split("/", maxsplit=1)[0], api.rpartition("/")[2]

    def known(facts: Facts) -> Mapping[str, Struct]:
        return {each.name: each for each in facts.node_classes.values() if (each.group, each.kind) == (group, kind)}

    return _of_group("nodeclass", api, plural, _NAME, known)


NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"

PODS = _core("pod", "Pod", _UID, lambda facts: facts.pods)
NODES = _core("node", "Node", _NAME, lambda facts: facts.nodes)
NODEPOOLS = _of_group("nodepool", "karpenter.sh/v1/NodePool", "nodepools", _NAME, lambda facts: facts.pools)
NODECLAIMS = _of_group("nodeclaim", "karpenter.sh/v1/NodeClaim", "nodeclaims", _NAME, _nothing)
KWOK_NODE_CLASSES = _node_classes("karpenter.kwok.sh/v1alpha1/KWOKNodeClass", "kwoknodeclasses")
EC2_NODE_CLASSES = _node_classes("karpenter.k8s.aws/v1/EC2NodeClass", "ec2nodeclasses")
_ALWAYS = (
    _core("namespace", "Namespace", _NAME, lambda facts: facts.namespaces),
    NODEPOOLS,
    _of_group("daemonset", "apps/v1/DaemonSet", "daemonsets", _UID, lambda facts: facts.daemonsets),
    _of_group("pdb", "policy/v1/PodDisruptionBudget", "poddisruptionbudgets", _UID, lambda facts: facts.pdbs),
    _of_group(
        "storageclass", "storage.k8s.io/v1/StorageClass", "storageclasses", _NAME, lambda facts: facts.storage_classes
    ),
    _core("pv", "PersistentVolume", _NAME, lambda facts: facts.volumes),
    _core("pvc", "PersistentVolumeClaim", _KEY, lambda facts: facts.volume_claims),
    _of_group("csinode", "storage.k8s.io/v1/CSINode", "csinodes", _NAME, lambda facts: facts.csi_nodes),
    _of_group(
        "volumeattachment",
        "storage.k8s.io/v1/VolumeAttachment",
        "volumeattachments",
        _NAME,
        lambda facts: facts.attachments,
    ),
)
_SERVICES = _core("service", "Service", _KEY, lambda facts: facts.services)
_WORKLOADS = (
    _workload("apps/v1/Deployment", "deployments"),
    _workload("apps/v1/ReplicaSet", "replicasets"),
    _workload("apps/v1/StatefulSet", "statefulsets"),
    _workload("v1/ReplicationController", "replicationcontrollers"),
)
_OVERLAYS = _of_group(
    "nodeoverlay", "karpenter.sh/v1alpha1/NodeOverlay", "nodeoverlays", _NAME, lambda facts: facts.overlays
)
_BUFFERS = _of_group(
    "capacitybuffer",
    "autoscaling.x-k8s.io/v1beta1/CapacityBuffer",
    "capacitybuffers",
    _KEY,
    lambda facts: facts.buffers,
)
_TEMPLATES = _core("podtemplate", "PodTemplate", _KEY, lambda facts: facts.pod_templates)


_DEVICES = (
    _device_kind("DeviceClass", "deviceclasses", _NAME, lambda facts: facts.device_classes),
    _device_kind("ResourceSlice", "resourceslices", _NAME, lambda facts: facts.resource_slices),
    _device_kind("ResourceClaim", "resourceclaims", _KEY, lambda facts: facts.resource_claims),
)


def observed(settings: Settings) -> list[Resource]:
    """Kinds whose objects are observations as they are, in the order in which a first list should be told. Those that
    only a setting looks at are watched with that setting."""
    kinds = list(_ALWAYS)
    if settings.default_spread:
        kinds.append(_SERVICES)
    if settings.default_spread or settings.capacity_buffers:
        kinds += _WORKLOADS
    if settings.node_overlays:
        kinds.append(_OVERLAYS)
    if settings.capacity_buffers:
        kinds += (_TEMPLATES, _BUFFERS)
    if not settings.ignore_dra_requests:
        kinds += _DEVICES
    return [*kinds, NODES, PODS]
