"""What it costs to disrupt a node, and in which order candidates are looked at (D-34…D-42)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kerf.engine.disruption.cluster import ClusterNode
from kerf.engine.lifecycle.eviction_cost import pod_cost
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, PodShape, is_terminal, owned_by
from kerf.engine.model.labels import CAPACITY_TYPE, DEFAULT_TENANCY, TENANCY, ZONE
from kerf.engine.scheduling.launchable.launch_offers import offerings_of

NODE_COST = 1.0
"""What every node costs, whatever runs there (D-38)."""


def rescheduling_cost(pods: Iterable[Pod], shapes: Mapping[str, PodShape]) -> float:
    """The disruption cost of a node with these reschedulable pods (D-38)."""
    return math.fsum([NODE_COST, *[max(0.0, pod_cost(pod, shapes)) for pod in pods]])


def node_cost(pods: Iterable[Pod], shapes: Mapping[str, PodShape]) -> float:
    """The disruption cost of a node that is no candidate, from all pods bound to it (D-78)."""
    counted = [pod for pod in pods if not is_terminal(pod) and not owned_by(pod, DAEMONSET)]
    return rescheduling_cost(counted, shapes)


def node_price(node: ClusterNode, instance_type: InstanceType | None) -> float:
    """The price of the first offering of the node's type in its zone, capacity type and tenancy, available or not; 0 if
    there is none (D-34). It is kept with the node for as long as the type is the same object."""
    if instance_type is None:
        return 0.0
    known = node.priced
    if not known or known[0][0] is not instance_type:
        known[:] = [(instance_type, _first_price(instance_type, node.labels))]
    return known[0][1]


def _first_price(instance_type: InstanceType, labels: Mapping[str, str]) -> float:
    for offering in offerings_of(instance_type, labels.get(TENANCY, DEFAULT_TENANCY)):
        if offering.zone == labels.get(ZONE) and offering.capacity_type == labels.get(CAPACITY_TYPE):
            return 0.0 if math.isnan(offering.price) else offering.price
    return 0.0


def savings_ratio(price: float, cost: float) -> float:
    """What a node costs per hour for each unit of disruption (D-39)."""
    return price / cost
