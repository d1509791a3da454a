"""Deployments, ReplicaSets, StatefulSets and ReplicationControllers: where pods come from, which pods are theirs
(S-151), and how many there are to be (S-177)."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Selector, VolumeRef
from kerf.engine.model.names import Digest, LabelMap, NamespaceName, Plain, WorkloadName

SCALABLE = ("apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/ReplicaSet")
"""S-177: what a CapacityBuffer may name."""


class Workload(Struct, frozen=True, omit_defaults=True):
    """`kind` is with its group and version, as in `Owner` ("apps/v1/Deployment"). `shape` is the digest of
    the PodShape of its template. `volume_claims`: what a StatefulSet claims for each of its pods. `created` in
    milliseconds since the epoch, 0 when absent."""

    kind: Plain
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
        """Unique among all workloads."""
        return f"{self.kind}/{self.namespace}/{self.name}"


def watched(workload: Workload) -> Workload:
    """What the engine looks at: that goes into the record, and nothing else."""
    return replace(workload, labels={}, template_labels={}, template_annotations={}, created=0, volume_claims=())
