"""Nodes as the engine sees them."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.model.names import LabelMap, NodeName, Plain, ProviderId

READY = "Ready"
REPAIRED = (
    "AcceleratedHardwareReady", "StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady",
)  # fmt: skip
"""Conditions besides Ready for which node repair replaces nodes (A-405…A-410)."""


class NodeCondition(Struct, frozen=True, omit_defaults=True):
    """A condition of a Node. `since` is its lastTransitionTime."""

    type: Plain
    status: Plain
    since: int = 0


class Node(Struct, frozen=True, omit_defaults=True):
    """A v1 Node. Times are milliseconds since the epoch, 0 when absent.

    `conditions` are those of REPAIRED that are not True. `proposed`: it carries kerf's own taint PROPOSED_TAINT
    (`engine.runtime.proposed_taints`). That taint is not among `taints`, for it changes nothing of what kerf plans.
    """

    name: NodeName
    uid: Plain = ""
    provider_id: ProviderId = ""
    created: int = 0
    labels: LabelMap = {}
    annotations: LabelMap = {}  # only the karpenter.sh ones
    taints: tuple[Taint, ...] = ()
    capacity: Resources = {}
    allocatable: Resources = {}
    ready: bool = False
    ready_since: int = 0  # lastTransitionTime of condition Ready
    deleting: int = 0
    conditions: tuple[NodeCondition, ...] = ()
    proposed: bool = False

    @property
    def host(self) -> str:
        """The value of its label for the host; without that label its name."""
        return self.labels.get(HOSTNAME) or self.name
