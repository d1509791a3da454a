"""The machine of a launched instance, on which a kubelet starts."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model import labels as names
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.kubernetes.pods import Resources, Taint


class Machine(Struct, frozen=True, kw_only=True):
    """`labels` and `taints` are those of the launch order (the kubelet's --node-labels and
    registerWithTaints)."""

    instance: str
    claim: str
    node_pool: str
    provider_id: str
    type: InstanceType
    zone: str
    capacity_type: str
    zone_id: str = ""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()

    def node_labels(self, hostname: str) -> dict[str, str]:
        """Return the labels of the Node as it joins: those of the order, and the well-known ones of type, zone and
        capacity type. They also stand under their old names, by which pods may still ask: Kubernetes sets both."""
        single = {key: values[0] for key, values in self.type.requirements.items() if len(values) == 1}
        known = {key: value for key, value in single.items() if key not in names.OF_RESERVATIONS}
        labels = {
            **known,
            **self.labels,
            names.INSTANCE_TYPE: self.type.name,
            names.ZONE: self.zone,
            names.CAPACITY_TYPE: self.capacity_type,
            **({names.ZONE_ID: self.zone_id} if self.zone_id else {}),
            names.HOSTNAME: hostname,
        }
        old = {key: labels[stable] for key, stable in names.ALIASES.items() if stable in labels}
        return {**old, **labels}

    def allocatable(self, *, devices: bool) -> Resources:
        """Return what the kubelet reports. Before device plugins have started, their resources are 0 (L-174)."""
        return {
            name: amount if devices or not is_device(name) else 0 for name, amount in self.type.allocatable().items()
        }


def is_device(resource: str) -> bool:
    """Whether a resource is an extended one, which a device plugin reports and not the kubelet itself."""
    return "/" in resource
