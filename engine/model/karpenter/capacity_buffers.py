"""CapacityBuffers (autoscaling.x-k8s.io): room to be kept free (L-57…L-62, S-177…S-182)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.names import CapacityBufferName, NamespaceName, Plain, PodTemplateName, WorkloadName

ACTIVE = "buffer.x-k8s.io/active-capacity"
"""The provisioning strategy that asks for nodes."""


class CapacityBuffer(Struct, frozen=True, omit_defaults=True):
    """Room to be kept free. The pods it is for are of a PodTemplate (`template`, its name) or of a workload (`kind` as
    in `Workload`, and `workload`, its name), all in the buffer's namespace."""

    uid: Plain
    namespace: NamespaceName
    name: CapacityBufferName
    template: PodTemplateName = ""
    kind: Plain = ""
    workload: WorkloadName = ""
    replicas: int | None = None
    percentage: int | None = None
    limits: Resources | None = None
    strategy: Plain = ACTIVE

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def virtual_name(buffer: CapacityBuffer, number: str | int) -> str:
    """The name of the pod of a buffer (S-179); its uid is the buffer's, a dash, and the number."""
    return f"capacity-buffer-{buffer.name}-{number}"


def virtual_key(uid: str, buffers: Mapping[str, CapacityBuffer]) -> str | None:
    """Namespace and name of the pod with this uid, if it is of one of the buffers (by their uids)."""
    owner, _, number = uid.rpartition("-")
    buffer = buffers.get(owner)
    return f"{buffer.namespace}/{virtual_name(buffer, number)}" if buffer is not None else None
