"""Small changes of a Node that several components make."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from kerf.engine.model import labels as names
from kerf.engine.model.kubernetes.nodes import REPAIRED, Node, NodeCondition
from kerf.engine.model.kubernetes.pods import Taint

UNREGISTERED = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")
DISRUPTED = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
UNREACHABLE = (
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
)


def with_taints(node: Node, taints: Iterable[Taint]) -> Node:
    """Append the taints that are missing by key and effect. Present ones keep their value (L-163)."""
    result = list(node.taints)
    for taint in taints:
        if not any(taint.same(present) for present in result):
            result.append(taint)
    return replace(node, taints=tuple(result))


def without_taints(node: Node, drop: Callable[[Taint], bool]) -> Node:
    return replace(node, taints=tuple(taint for taint in node.taints if not drop(taint)))


def with_labels(node: Node, labels: dict[str, str]) -> Node:
    return replace(node, labels={**node.labels, **labels})


def with_ready(node: Node, ready: bool, now: int) -> Node:
    """Set the condition Ready. Its transition time moves only when the status changes (D-2)."""
    return node if node.ready == ready else replace(node, ready=ready, ready_since=now)


def with_condition(node: Node, condition: str, status: str, now: int) -> Node:
    """Set a condition that node repair looks at. A Node keeps such conditions while they are not True."""
    known = next((present for present in node.conditions if present.type == condition), None)
    if condition not in REPAIRED or (known is not None and known.status == status):
        return node
    left = tuple(present for present in node.conditions if present.type != condition)
    return replace(node, conditions=left if status == "True" else (*left, NodeCondition(condition, status, now)))
