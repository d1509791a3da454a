"""PriorityClasses: what admission makes of a pod's priorityClassName. In a cluster pods carry the outcome already."""

from __future__ import annotations

from msgspec import Struct


class PriorityClass(Struct, frozen=True, omit_defaults=True):
    """`default`: for pods that name none."""

    name: str
    value: int
    default: bool = False


BUILT_IN = (
    PriorityClass("system-cluster-critical", 2_000_000_000),
    PriorityClass("system-node-critical", 2_000_001_000),
)
"""Those that every cluster has."""
CRITICAL = frozenset(each.name for each in BUILT_IN)
"""D-144: pods of these classes leave a node after all others. The number of a priority does not count."""
