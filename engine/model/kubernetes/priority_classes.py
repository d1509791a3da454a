"""PriorityClasses: how admission resolves a pod's priorityClassName. Pods in a cluster carry the result already."""

from __future__ import annotations

from msgspec import Struct


class PriorityClass(Struct, frozen=True, omit_defaults=True):
    """A PriorityClass. `default` marks the one for pods that name none."""

    name: str
    value: int
    default: bool = False


BUILT_IN = (
    PriorityClass("system-cluster-critical", 2_000_000_000),
    PriorityClass("system-node-critical", 2_000_001_000),
)
"""The classes that every cluster has."""
CRITICAL = frozenset(priority_class.name for priority_class in BUILT_IN)
"""Pods of these classes leave a node after all others (D-144). The number of a priority does not count."""
