"""Which pods set a node's quiet time back last."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.replay.explain.method_verdicts import MethodVerdict
from kerf.replay.history.histories import Histories

_TOO_SOON = (DisruptionCode.NOT_CONSOLIDATABLE, DisruptionCode.EMPTY_NOT_LONG_ENOUGH)


class PodChange(Struct, frozen=True):
    """When pods of a node last changed so that consolidateAfter began anew (D-57): those that `came`, and that `left`
    (namespace/name). Neither where the record does not tell: a pod that ended by itself."""

    at: int
    came: tuple[str, ...]
    left: tuple[str, ...]


def last_pod_change(claim: NodeClaim, methods: Iterable[MethodVerdict], histories: Histories) -> PodChange | None:
    """Return the last change of a node's pods, if it is why a method leaves the node."""
    at = claim.last_pod_event
    if not at or not any(method.reason.code in _TOO_SOON for method in methods):
        return None
    pods = histories.pods.on_node(claim.node)
    return PodChange(
        at,
        came=tuple(sorted(pod.key for pod in pods if pod.bound == at)),
        left=tuple(sorted(pod.key for pod in pods if pod.left == at)),
    )
