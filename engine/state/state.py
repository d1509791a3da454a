"""The state: what the fold of the record knows. Only `kerf.engine.state.evolve` changes it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodeclaim_templates import Template
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepool_health import PoolHealth
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.devices import DeviceClass, ResourceClaim, ResourceSlice
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Pod, Taint
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.volumes import CSINode, StorageClass, Volume, VolumeAttachment, VolumeClaim
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.model.names import (
    MADE_FROM,
    AttachmentName,
    CapacityBufferKey,
    DeviceClassName,
    Digest,
    InstanceId,
    KeyedHash,
    MessageId,
    NamespaceName,
    NodeClaimName,
    NodeClassKey,
    NodeName,
    NodeOverlayName,
    NodePoolName,
    PlacementGroupName,
    Plain,
    PodTemplateKey,
    ResourceClaimKey,
    ResourceSliceName,
    ServiceKey,
    StorageClassName,
    StreamName,
    SubnetId,
    VolumeClaimKey,
    VolumeName,
    WorkloadKey,
)
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Intent, LaunchInstance, Move
from kerf.engine.record.observations import Imported, NodeClassSeen, ReservationsSeen
from kerf.engine.state.indexes import Blobs, Indexes


class Asked(Struct, frozen=True):
    """An intent without an outcome yet."""

    intent: Intent
    at: int


class Orphan(Struct, frozen=True):
    """An instance of a claim that was over before the cloud answered, or that a listing showed and no claim has: it is
    to be ended."""

    claim: NodeClaimName
    attempts: int = 0
    retry_at: int = 0
    listed: bool = False


class Found(Struct, frozen=True):
    """A NodeClaim object that the record knows no claim for: first seen at `at`, in the entry at `position`."""

    claim: NodeClaimObject
    at: int
    position: int


class Search(Struct, frozen=True):
    """A claim that is over, and may have an instance that nobody was told of: look for it at `at`."""

    order: LaunchInstance
    at: int
    attempts: int = 0


class Underway(Struct, frozen=True):
    """A move that was proposed at `at`, or that was started then."""

    move: Move
    at: int
    started: bool = False


class Hold(Struct, frozen=True):
    """A claim whose move came to nothing so many times in a row: it is no candidate before `until`. `again`: whether it
    is looked at then although nothing changes, which is so if something has changed since."""

    since: int
    until: int
    times: int = 1
    again: bool = False


class StaticPool(Struct, frozen=True, omit_defaults=True):
    """A static NodePool: the code of what was last decided, launches that failed in a row, and the time
    before which no further one is asked for."""

    code: Plain = ""
    failures: int = 0
    retry_at: int = 0


class LaunchedFor(Struct, frozen=True, omit_defaults=True):
    """The latest claim that was launched for a pod which waits, and whose node has joined at `at`, or was lost on its
    way. `times`: how many such claims there were; `taints`: those that its node came with, and that stay on it."""

    claim: NodeClaimName
    at: int
    times: int = 1
    taints: tuple[Taint, ...] = ()


class DaemonPod(Struct, frozen=True):
    """The newest pod of a DaemonSet that was seen."""

    created: int
    uid: Plain
    shape: Digest


class GroupLacks(Struct, omit_defaults=True):
    """What a placement group has no room for: "capacity type|instance type|zone" → until; "||zone" for all types. And
    what of that was refused whenever it was asked for (as `Facts.refused_since`)."""

    unavailable: dict[Plain, int] = {}
    refused_since: dict[Plain, int] = {}


class Facts(Struct, omit_defaults=True):
    """The part of the state that is stored in snapshots and counts for its digest. Keys as in ObjectGone; NodeClasses
    and catalogues by `group/kind/name`; times in ms since the epoch."""

    position: int = 0
    at: int = 0  # the time of the last entry
    record: Plain = ""
    epoch: int = 0
    settings: Settings = Settings()
    settings_digest: KeyedHash = ""
    streams: dict[StreamName, int] = {}  # stream → version
    pods: dict[Plain, Pod] = {}
    nodes: dict[NodeName, Node] = {}
    claims: dict[NodeClaimName, NodeClaim] = {}
    pools: dict[NodePoolName, NodePool] = {}
    node_classes: dict[NodeClassKey, NodeClassSeen] = {}
    catalogues: dict[NodeClassKey, Digest] = {}
    reservations: dict[NodeClassKey, ReservationsSeen] = {}  # what is left of them since the catalogue was made
    daemonsets: dict[Plain, DaemonSet] = {}
    daemon_pods: dict[Plain, DaemonPod] = {}  # by DaemonSet
    pdbs: dict[Plain, PodDisruptionBudget] = {}
    namespaces: dict[NamespaceName, Namespace] = {}
    volume_claims: dict[VolumeClaimKey, VolumeClaim] = {}
    volumes: dict[VolumeName, Volume] = {}
    storage_classes: dict[StorageClassName, StorageClass] = {}
    csi_nodes: dict[NodeName, CSINode] = {}
    attachments: dict[AttachmentName, VolumeAttachment] = {}
    unavailable: dict[Plain, int] = {}  # "capacity type|instance type|zone" → until
    full_subnets: dict[SubnetId, int] = {}  # without free addresses → until
    refused_since: dict[Plain, int] = {}  # as `unavailable`, refused whenever asked for → until after the first refusal
    subnets_full_since: dict[SubnetId, int] = {}  # as `full_subnets`
    placement_groups: dict[PlacementGroupName, GroupLacks] = {}  # by id
    launches: dict[NodeClaimName, LaunchInstance] = {}  # as it is repeated until there is an instance
    intents: dict[Plain, Asked] = {}  # "position.index" → not answered yet
    orphans: dict[InstanceId, Orphan] = {}  # by instance
    found: dict[NodeClaimName, Found] = {}  # by claim
    searches: dict[NodeClaimName, Search] = {}  # by claim
    lone: dict[NodeName, NodeClaim] = {}  # what was asked for of a Node on its way out that belongs to no claim (W-80)
    messages: dict[MessageId, int] = {}  # interruption messages seen → when, against duplicates
    services: dict[ServiceKey, Service] = {}  # by namespace/name, as the next four are found by their `key`
    workloads: dict[WorkloadKey, Workload] = {}
    overlays: dict[NodeOverlayName, NodeOverlay] = {}  # by name
    buffers: dict[CapacityBufferKey, CapacityBuffer] = {}
    pod_templates: dict[PodTemplateKey, PodTemplate] = {}
    resource_claims: dict[ResourceClaimKey, ResourceClaim] = {}  # by namespace/name
    device_classes: dict[DeviceClassName, DeviceClass] = {}
    resource_slices: dict[ResourceSliceName, ResourceSlice] = {}
    buffered: dict[NodeName, int] = {}  # claim or unmanaged node → pods of CapacityBuffers that the plan put on it
    targets: dict[
        Plain, NodeName
    ] = {}  # pod without a place of its own → the claim or unmanaged node that the plan put it on
    # ("" for one that the scheduler has not come to yet, and whose claim has ended)
    launched_for: dict[Plain, LaunchedFor] = {}  # pod that waits, or whose node goes
    nominations: dict[Plain, NodeName] = {}  # pod → the node that kerf nominated for it, as its status shows
    batch_opened: int = 0  # the provisioning window (S-55); 0 when closed
    batch_last: int = 0
    arrived: dict[Plain, None] = {}  # pods that have come to wait since the latest pass, refused or still untried
    arrived_at: int = 0  # when the last of them did
    refused_at: int = 0  # when the scheduler last refused a pod
    rest: tuple[Plain, ...] = ()  # pods that the latest pass had no steps left for: the next one is about these
    rest_at: int = 0  # when that one is due
    unplaced: bool = False  # the latest plan left pods without a place
    retry_at: int = 0  # when pods that still wait are planned for although nothing changed; 0 for never
    static: dict[NodePoolName, StaticPool] = {}  # by NodePool
    plan: int = 0  # position of the latest provisioning decision that did not repeat an earlier one
    plan_digest: KeyedHash = ""  # of its result
    plan_at: int = 0  # its time
    moves: dict[Plain, Underway] = {}  # "position.index" of the proposal
    holds: dict[NodeClaimName, Hold] = {}  # by claim
    moves_changed: int = 0  # when something changed first that the latest disruption pass has not seen; 0 for nothing
    moves_looked: int = 0  # when the latest disruption pass was
    moves_look_at: int = 0  # when it may come to something else although nothing changes; 0 for never
    health: dict[NodePoolName, PoolHealth] = {}  # by NodePool: whether its nodes register
    made_from: dict[
        KeyedHash, Annotated[Template, MADE_FROM]
    ] = {}  # by hash: what NodePools and NodeClasses ask for, and claims were made from
    over: dict[NodeClaimName, int] = {}  # claim → the position of its end, until a cut has removed that
    cut: int = 0  # position of the latest RecordCut
    clocks_differ: int = 0  # since when the clocks do not agree; 0 while they do
    unknown: int = 0  # entries of unknown type that were skipped
    imported: Imported | None = None  # what a partial record was made of

    @property
    def tells_history(self) -> bool:
        """Whether the record tells what other programs wrote, and nothing is decided in it."""
        return self.imported is not None and not self.imported.captured


class State:
    """Facts and the indexes over them."""

    __slots__ = ("facts", "indexes")

    def __init__(self, facts: Facts, blobs: Blobs) -> None:
        self.facts = facts
        self.indexes = Indexes(blobs)
