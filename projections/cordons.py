"""Whether a node is cordoned: kubectl cordon, and kubectl drain, set a taint that keeps new pods away."""

from __future__ import annotations

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Taint

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def is_cordoned(node: Node) -> bool:
    return any(map(is_cordon, node.taints))


def is_cordon(taint: Taint) -> bool:
    return taint.key == UNSCHEDULABLE
