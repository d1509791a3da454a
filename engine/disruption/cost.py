"""What it costs to disrupt a node, and in which order candidates are looked at (D-34…D-42)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, PodShape, is_terminal, owned_by
from kerf.engine.model.labels import CAPACITY_TYPE, ZONE

LOWEST, HIGHEST = -10.0, 10.0
DELETION_COST_UNIT = 2.0**27
PRIORITY_UNIT = 2.0**25
NODE_COST = 1.0
"""What every node costs, whatever runs there (D-38)."""


@lru_cache(maxsize=1024)
def eviction_cost(deletion_cost: int, priority: int) -> float:
    """What it costs to evict a pod, from -10 to 10, 1 by default (D-36)."""
    return max(LOWEST, min(HIGHEST, 1.0 + deletion_cost / DELETION_COST_UNIT + priority / PRIORITY_UNIT))


def pod_cost(pod: Pod, shapes: Mapping[str, PodShape]) -> float:
    return eviction_cost(pod.deletion_cost, shapes[pod.shape].priority)


def rescheduling_cost(pods: Iterable[Pod], shapes: Mapping[str, PodShape]) -> float:
    """D-38: of a node with these reschedulable pods."""
    return math.fsum([NODE_COST, *[max(0.0, pod_cost(pod, shapes)) for pod in pods]])


def node_cost(pods: Iterable[Pod], shapes: Mapping[str, PodShape]) -> float:
    """D-78: a node's own figure, from all pods bound to it, for nodes that are no candidates."""
    counted = [pod for pod in pods if not is_terminal(pod) and not owned_by(pod, DAEMONSET)]
    return rescheduling_cost(counted, shapes)


def remaining_lifetime(created: int, expire_after: int | None, now: int) -> float:
    """D-41: the share of its life that a claim has left; 1 for one that never expires. Milliseconds."""
    if not expire_after:
        return 1.0 if expire_after is None else 0.0
    return max(0.0, min(1.0, (expire_after - (now - created)) / expire_after))


def legacy_cost(pods: Iterable[Pod], shapes: Mapping[str, PodShape], lifetime: float) -> float:
    """D-42: over all pods, times the lifetime remaining; orders the victims of a static scale-down."""
    return math.fsum(pod_cost(pod, shapes) for pod in pods) * lifetime


def node_price(instance_type: InstanceType | None, labels: Mapping[str, str]) -> float:
    """D-34: of the first offering of the node's type in its zone and capacity type, available or not; 0 for none."""
    offerings = () if instance_type is None else instance_type.offerings
    for each in offerings:
        if each.zone == labels.get(ZONE) and each.capacity_type == labels.get(CAPACITY_TYPE):
            return 0.0 if math.isnan(each.price) else each.price
    return 0.0


def savings_ratio(price: float, cost: float) -> float:
    """What a node costs per hour for each unit of disruption (D-39)."""
    return price / cost
