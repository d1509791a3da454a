"""Pods and pod templates. A pod's shape is built once: pods whose raw bytes of all relevant fields are equal
share it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, STATEFULSET, Owner, Pod, PodShape
from kerf.engine.model.labels import REGION, ZONE
from kerf.engine.model.manifests.kubernetes.pod_shapes import shape_of
from kerf.engine.model.manifests.kubernetes.pods_wire import (
    PodSpecWire,
    PodWire,
    ScannedContainer,
    ScannedContainerStatus,
    ScannedMetadata,
    ScannedPod,
    VolumeWire,
)
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import OwnerWire, Read, read_time
from kerf.engine.model.quantities import LARGEST_AMOUNT

DELETION_COST_IGNORED = "deletion-cost-ignored"
"""The note on a pod whose deletion cost is no number (`value`)."""

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_MOST_SHAPES = 20_000
_MOST_DIGITS = 18
"""Of a resourceVersion that counts: more do not fit into 64 bits."""

_KUBE_SCHEDULER = ("", "default-scheduler")
_scan = msgspec.json.Decoder(ScannedPod).decode
_read = msgspec.json.Decoder(PodWire).decode


_known: dict[tuple[object, ...], tuple[str, PodShape]] = {}
"""Shapes by the raw bytes they were made from. Equal bytes make equal shapes, so this changes no result."""


def read_pod(data: bytes, report: Report) -> Read:
    """A v1 Pod and the blob of its shape. Raises `msgspec.ValidationError` for a value of a wrong type."""
    scanned = _scan(data)
    key = _shape_key(scanned)
    known = _known.get(key)
    if known is None:
        wire = _read(data)
        known = _digested(shape_of(report, "spec", wire.spec, _own_labels(wire), wire.status))
        if not report.violations:
            if len(_known) >= _MOST_SHAPES:
                _known.clear()
            _known[key] = known
    digest, shape = known
    return Read(_pod(scanned, digest, report), {digest: shape})


def read_template(report: Report, path: str, spec: PodSpecWire, labels: dict[str, str]) -> tuple[str, PodShape]:
    """The digest and the shape of a pod template whose spec stands at `path`."""
    return _digested(shape_of(report, path, spec, labels))


def _own_labels(pod: PodWire) -> dict[str, str]:
    """The labels without those that the API server copies from a pod's Node (KEP-4742, on since Kubernetes 1.35).

    They say where the pod is, not what it asks for: the pod that comes after it has none of them.
    """
    if not pod.spec.node_name:
        return pod.metadata.labels
    return {key: value for key, value in pod.metadata.labels.items() if key not in (ZONE, REGION)}


def _digested(shape: PodShape) -> tuple[str, PodShape]:
    return content(shape)[0], shape


def _shape_key(pod: ScannedPod) -> tuple[object, ...]:
    """Everything that `shape_of` reads, as raw bytes or plain values."""
    spec, status = pod.spec, pod.status
    return (
        bytes(pod.metadata.labels),
        bool(spec.node_name),
        bytes(spec.node_selector),
        bytes(spec.affinity),
        bytes(spec.tolerations),
        bytes(spec.topology_spread_constraints),
        bytes(spec.overhead),
        bytes(spec.resources),
        bytes(spec.resource_claims),
        spec.priority,
        spec.priority_class_name,
        spec.termination_grace_period_seconds,
        _containers_key(spec.containers),
        _containers_key(spec.init_containers),
        tuple([_volume_key(v) for v in spec.volumes if v.persistent_volume_claim or v.ephemeral]),
        _statuses_key(status.container_statuses),
        _statuses_key(status.init_container_statuses),
        any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in status.conditions),
        tuple(
            [
                claim_status.name
                for claim_status in status.resource_claim_statuses or ()
                if not claim_status.resource_claim_name
            ]
        ),
    )


def _containers_key(containers: Iterable[ScannedContainer]) -> tuple[object, ...]:
    return tuple([(c.name, bytes(c.resources), bytes(c.ports), c.restart_policy) for c in containers])


def _statuses_key(statuses: Iterable[ScannedContainerStatus]) -> tuple[object, ...]:
    """Only what enters requests: a status without resources never does (S-30)."""
    reported = [s for s in statuses if bytes(s.resources)]
    return tuple([(s.name, bytes(s.resources), bytes(s.allocated_resources)) for s in reported])


def _volume_key(volume: VolumeWire) -> tuple[str, str, str | None]:
    claim = volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim else ""
    template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
    return volume.name, claim, template.spec.storage_class_name if template and template.spec else None


def _pod(scanned: ScannedPod, digest: str, report: Report) -> Pod:
    metadata, spec, status = scanned.metadata, scanned.spec, scanned.status
    if not metadata.name:
        report.add("KERF304", "metadata.name", "An object needs a name")
    namespace = metadata.namespace or "default"
    phase = status.phase or "Pending"
    if phase not in _PHASES:
        report.one_of("status.phase", phase, _PHASES)
    unschedulable = ready = False
    untried = phase == "Pending" and not spec.node_name and spec.scheduler_name in _KUBE_SCHEDULER
    for condition in status.conditions:
        if condition.type == "PodScheduled":
            unschedulable, untried = condition.reason == "Unschedulable", False
        elif condition.type == "Ready":
            ready = condition.status == "True"
    return Pod(
        uid=metadata.uid or f"{namespace}/{metadata.name}",
        namespace=namespace,
        name=metadata.name,
        shape=digest,
        created=read_time(report, "metadata.creationTimestamp", metadata.creation_timestamp),
        phase=phase,
        node=spec.node_name,
        unschedulable=unschedulable,
        nominated=status.nominated_node_name,
        ready=ready,
        started=read_time(report, "status.startTime", status.start_time),
        deleting=read_time(report, "metadata.deletionTimestamp", metadata.deletion_timestamp),
        owner=_owner(metadata.owner_references),
        do_not_disrupt=metadata.annotations.do_not_disrupt,
        deletion_cost=_deletion_cost(metadata, report),
        untried=untried,
        arrival=_arrival(metadata.resource_version) if untried else 0,
    )


def _arrival(version: str) -> int:
    """The number of a resourceVersion, which grows from object to object (KEP-5504); 0 of one that is none."""
    return int(version) if version.isdecimal() and len(version) <= _MOST_DIGITS else 0


def _owner(references: list[OwnerWire]) -> Owner | None:
    """The reference that decides: any of the three kinds that predicates ask for (D-10), else the controller
    (S-151)."""
    controller = None
    for reference in references:
        kind = f"{reference.api_version}/{reference.kind}"
        if kind in (DAEMONSET, STATEFULSET, NODE_OWNER):
            return Owner(kind, reference.name, reference.uid, bool(reference.controller))
        if reference.controller and controller is None:
            controller = Owner(kind, reference.name, reference.uid)
    return controller


def _deletion_cost(metadata: ScannedMetadata, report: Report) -> int:
    """The deletion cost as a number: 0 when absent or unreadable; a fraction is cut off (D-36)."""
    text = metadata.annotations.deletion_cost
    if not text:
        return 0
    try:
        cost = int(float(text))
        return max(-LARGEST_AMOUNT, min(LARGEST_AMOUNT, cost))
    except (ValueError, OverflowError):
        report.note(DELETION_COST_IGNORED, value=text)
        return 0
