"""Which types may stand in the record. Names and schema numbers are a contract with every record ever written."""

from __future__ import annotations

import re

from msgspec import Struct

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.devices import DeviceClass, ResourceClaim, ResourceSlice
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.volumes import CSINode, StorageClass, Volume, VolumeAttachment, VolumeClaim
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record import observations as seen
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import EntryType


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


OBSERVATIONS: tuple[EntryType, ...] = (
    EntryType("record.started", 1, seen.RecordStarted),
    EntryType("record.office-taken", 1, seen.OfficeTaken),
    EntryType("record.cut", 1, seen.RecordCut),
    EntryType("settings.seen", 1, seen.SettingsSeen),
    EntryType("pod.seen", 1, Pod),
    EntryType("node.seen", 1, Node),
    EntryType("nodepool.seen", 1, NodePool),
    EntryType("nodeclass.seen", 1, seen.NodeClassSeen),
    EntryType("daemonset.seen", 1, DaemonSet),
    EntryType("pdb.seen", 1, PodDisruptionBudget),
    EntryType("namespace.seen", 1, Namespace),
    EntryType("pvc.seen", 1, VolumeClaim),
    EntryType("pv.seen", 1, Volume),
    EntryType("storageclass.seen", 1, StorageClass),
    EntryType("csinode.seen", 1, CSINode),
    EntryType("volumeattachment.seen", 1, VolumeAttachment),
    EntryType("service.seen", 1, Service),
    EntryType("workload.seen", 1, Workload),
    EntryType("podtemplate.seen", 1, PodTemplate),
    EntryType("nodeoverlay.seen", 1, NodeOverlay),
    EntryType("capacitybuffer.seen", 1, CapacityBuffer),
    EntryType("resourceclaim.seen", 1, ResourceClaim),
    EntryType("deviceclass.seen", 1, DeviceClass),
    EntryType("resourceslice.seen", 1, ResourceSlice),
    EntryType("object.gone", 1, seen.ObjectGone),
    EntryType("catalogue.seen", 1, seen.CatalogueSeen),
    EntryType("reservations.seen", 1, seen.ReservationsSeen),
    EntryType("nodeclaim.seen", 1, NodeClaimObject),
    EntryType("nodeclaim.deletion-seen", 1, seen.NodeClaimDeletionSeen),
    EntryType("launch.answered", 1, seen.LaunchAnswered),
    EntryType("instance.seen", 1, seen.InstanceSeen),
    EntryType("instance.listed", 1, seen.InstancesListed),
    EntryType("effect.answered", 1, seen.EffectAnswered),
    EntryType("interruption.seen", 1, seen.InterruptionSeen),
    EntryType("input.refused", 1, seen.InputRefused),
    EntryType("watch.gap", 1, seen.WatchGap),
)
CLAIM: tuple[EntryType, ...] = tuple(EntryType(f"claim.{_kebab(t.__name__)}", 1, t) for t in CLAIM_EVENTS)
DECISION = EntryType("decision.made", 1, Decision)

TYPES: dict[str, EntryType] = {t.name: t for t in (*OBSERVATIONS, *CLAIM, DECISION)}
NAME_OF: dict[type[Struct], str] = {t.payload: t.name for t in TYPES.values()}

STREAM_OF: dict[type[Struct], str] = {t.payload: "seen/" + t.name.partition(".")[0] for t in OBSERVATIONS}
"""Observations go to one stream a kind; claim events to `nodeclaim/<name>`; decisions to `decision/<decider>`."""


def stream_of(payload: Struct) -> str:
    """The stream an entry with this payload belongs to."""
    if isinstance(payload, Decision):
        return "decision/" + payload.decider
    stream = STREAM_OF.get(type(payload))
    return stream if stream is not None else f"nodeclaim/{payload.claim}"  # type: ignore[attr-defined]


BLOB_FIELD: dict[type[Struct], str] = {
    Pod: "shape",
    DaemonSet: "shape",
    Workload: "shape",
    PodTemplate: "shape",
    seen.CatalogueSeen: "digest",
    seen.NodeClassSeen: "digest",
}
"""Which field of a payload names a blob by its digest (empty: none)."""


def blob_of(payload: Struct) -> str:
    """The digest of the blob that this payload names, empty when it names none."""
    field = BLOB_FIELD.get(type(payload))
    return getattr(payload, field) if field is not None else ""
