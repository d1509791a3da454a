"""Deployments, ReplicaSets, StatefulSets and ReplicationControllers: which pods are theirs (S-151), and how many
(S-177).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Selector, VolumeRef
from kerf.engine.model.names import (
    Digest,
    LabelMap,
    NamespaceName,
    ObjectKind,
    Plain,
    WorkloadName,
)

SCALABLE = ("apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/ReplicaSet")
"""The kinds of workloads that a CapacityBuffer may name (S-177)."""


class Workload(Struct, frozen=True, omit_defaults=True):
    """A workload. `kind` includes group and version, as in `Owner` ("apps/v1/Deployment").

    `shape` is the digest of its template's PodShape. `volume_claims` are what a StatefulSet claims for each pod.
    `created` is in milliseconds since the epoch, 0 when absent.
    """

    kind: ObjectKind
    namespace: NamespaceName
    name: WorkloadName
    shape: Digest
    uid: Plain = ""
    replicas: int = 1
    labels: LabelMap = {}
    template_labels: LabelMap = {}
    template_annotations: LabelMap = {}
    created: int = 0
    volume_claims: tuple[VolumeRef, ...] = ()
    selector: Selector | None = None

    @property
    def key(self) -> str:
        """Returns a key that is unique among all workloads."""
        return f"{self.kind}/{self.namespace}/{self.name}"


def watched(workload: Workload) -> Workload:
    """Returns the workload reduced to what the engine looks at. Only that is recorded."""
    return replace(workload, labels={}, template_labels={}, template_annotations={}, created=0, volume_claims=())
