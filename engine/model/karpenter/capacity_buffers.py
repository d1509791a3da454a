"""CapacityBuffers (autoscaling.x-k8s.io): room that is kept free (L-57…L-62, S-177…S-182)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.names import (
    CapacityBufferName,
    NamespaceName,
    ObjectKind,
    Plain,
    PodTemplateName,
    WorkloadName,
)

ACTIVE = "buffer.x-k8s.io/active-capacity"
"""The provisioning strategy that asks for nodes."""
VIRTUAL = "capacity-buffer-"
"""What names of virtual pods begin with."""


class CapacityBuffer(Struct, frozen=True, omit_defaults=True):
    """Room to keep free for pods like those of a PodTemplate or of a workload, in the buffer's namespace.

    `template` is the PodTemplate's name. `workload` is the workload's name and `kind` its kind, as in `Workload`.
    `generation` counts its changes, 0 if unknown.
    """

    uid: Plain
    namespace: NamespaceName
    name: CapacityBufferName
    template: PodTemplateName = ""
    kind: ObjectKind = ""
    workload: WorkloadName = ""
    replicas: int | None = None
    percentage: int | None = None
    limits: Resources | None = None
    strategy: Plain = ACTIVE
    generation: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def virtual_name(buffer: CapacityBuffer, number: str | int) -> str:
    """Returns the name of a buffer's virtual pod (S-179). The pod's uid is the buffer's uid, a dash, and the number."""
    return f"{VIRTUAL}{buffer.name}-{number}"


def virtual_key(uid: str, buffers: Mapping[str, CapacityBuffer]) -> str | None:
    """Returns namespace/name of the virtual pod with this uid; None if it belongs to none of the buffers (by their
    uids).
    """
    owner, _, number = uid.rpartition("-")
    buffer = buffers.get(owner)
    return f"{buffer.namespace}/{virtual_name(buffer, number)}" if buffer is not None else None
