"""What it costs to evict pods, and in which order a static NodePool gives up its nodes (D-36, D-37, D-41, D-42)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from kerf.engine.model.kubernetes.pods import Pod, PodShape

LOWEST, HIGHEST = -10.0, 10.0
DELETION_COST_UNIT = 2.0**27
PRIORITY_UNIT = 2.0**25


@lru_cache(maxsize=1024)
def eviction_cost(deletion_cost: int, priority: int) -> float:
    """The cost of one eviction by the pod's deletion cost and priority: 1 for a plain pod, from -10 to 10 (D-36)."""
    return max(LOWEST, min(HIGHEST, 1.0 + deletion_cost / DELETION_COST_UNIT + priority / PRIORITY_UNIT))


def pod_cost(pod: Pod, shapes: Mapping[str, PodShape]) -> float:
    return eviction_cost(pod.deletion_cost, shapes[pod.shape].priority)


def remaining_lifetime(created: int, expire_after: int | None, now: int) -> float:
    """The share of its life that a claim has left; 1 for one that never expires (D-41). Times in milliseconds."""
    if not expire_after:
        return 1.0 if expire_after is None else 0.0
    return max(0.0, min(1.0, (expire_after - (now - created)) / expire_after))


def scale_down_cost(pods: Iterable[Pod], shapes: Mapping[str, PodShape], lifetime: float) -> float:
    """The cost of all pods' evictions, times the share of life that is left; it orders a static scale-down (D-42)."""
    return math.fsum(pod_cost(pod, shapes) for pod in pods) * lifetime
