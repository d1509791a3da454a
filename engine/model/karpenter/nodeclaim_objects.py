"""NodeClaim objects as the API server shows them, as far as adoption and the comparison with a real Karpenter need
them.

kerf's own NodeClaims are aggregates (kerf.engine.nodeclaim). These objects are projections of them, or another
controller's.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.names import FreeText, ImageId, LabelMap, NodeClaimName, NodeName, Plain, ProviderId


class Condition(Struct, frozen=True, omit_defaults=True):
    """`since` is lastTransitionTime in milliseconds since the epoch, 0 when absent."""

    type: Plain
    status: Plain
    reason: Plain = ""
    message: FreeText = ""
    since: int = 0


class NodeClaimObject(Struct, frozen=True, omit_defaults=True):
    """A karpenter.sh/v1 NodeClaim. Times are milliseconds since the epoch, 0 when absent; durations are milliseconds.

    A duration of None means Never (expire_after) or unset (the grace period).
    """

    name: NodeClaimName
    node_class: NodeClassRef
    uid: Plain = ""
    labels: LabelMap = {}
    annotations: LabelMap = {}  # only Karpenter's
    requirements: tuple[RequirementSpec, ...] = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requests: Resources = {}
    expire_after: int | None = 720 * 3_600_000  # L-42
    termination_grace_period: int | None = None
    provider_id: ProviderId = ""
    node: NodeName = ""
    image: ImageId = ""
    capacity: Resources = {}
    allocatable: Resources = {}
    conditions: tuple[Condition, ...] = ()
    last_pod_event: int = 0  # L-45
    created: int = 0
    deleting: int = 0


def condition_is_true(claim: NodeClaimObject, kind: str) -> bool:
    return any(c.type == kind and c.status == "True" for c in claim.conditions)
