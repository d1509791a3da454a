"""Taints that a node carries only while it starts (L-101, L-265), and those that pods must tolerate then (S-72)."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.labels import UNREGISTERED_TAINT

EPHEMERAL_TAINTS: frozenset[tuple[str, str]] = frozenset(
    [
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (UNREGISTERED_TAINT, "NoExecute"),
    ]
)
"""Key and effect. A taint listed here delays initialization, and a plan expects it to go."""


def is_ephemeral(taint: Taint) -> bool:
    """Whether the taint goes by itself while a node starts (L-101)."""
    return (taint.key, taint.effect) in EPHEMERAL_TAINTS or taint.key.startswith("readiness.k8s.io/")


def counting_taints(taints: tuple[Taint, ...], startup: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The taints of an uninitialized node that pods must tolerate (S-72). `startup` are the NodePool's startup
    taints."""
    return tuple(t for t in taints if not is_ephemeral(t) and not any(t.same(s) for s in startup))
