"""A pod class: pods that scheduling cannot tell apart, compiled once for a pass."""

from __future__ import annotations

from kerf.engine.model.karpenter.requirements import NO_REQUIREMENTS
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.devices.allocation import DeviceWant
from kerf.engine.scheduling.pods.demand import Demand
from kerf.engine.scheduling.pods.pod_volumes import PodVolumes
from kerf.engine.scheduling.topology.pod_counts import PodCount

VOLUMES = "volumes"
RESOURCE_CLAIMS = "resource claims"


def unsupported(shape: PodShape, volumes: PodVolumes | None, devices: bool) -> tuple[str, ...]:
    """The features of a pod that this version cannot honour."""
    features = []
    if shape.volumes and volumes is None:
        features.append(VOLUMES)
    if shape.resource_claims and not devices:
        features.append(RESOURCE_CLAIMS)
    return tuple(features)


class PodClass:
    """One class, compiled.

    * `number`: counts classes in the order in which they were made.
    * `requests`: include the resource `pods`; `other_requests` are those of other resources than CPU and memory.
    * `demand`: all that its pods ask of a place, apart from room.
    * `of_new_nodes`: what it asks of new nodes besides its shape; part of its demand.
    * `counted`: the topology counts that its pods add to.
    """

    __slots__ = (
        "apart",
        "attached",
        "contradictions",
        "counted",
        "cpu",
        "demand",
        "devices",
        "memory",
        "namespace",
        "number",
        "of_new_nodes",
        "original_shape",
        "other_requests",
        "ports",
        "requests",
        "requirements",
        "shape",
        "tolerations",
        "unsupported",
        "volumes",
    )

    def __init__(
        self,
        number: int,
        namespace: str,
        original_shape: PodShape,
        shape: PodShape,
        demand: Demand,
        counted: tuple[PodCount, ...],
        volumes: PodVolumes | None,
        devices: DeviceWant | None = None,
    ) -> None:
        """`original_shape`: the shape before anything was given up; `volumes`: None if nothing is known of them;
        `devices`: None if it asks for none."""
        self.number = number
        self.namespace = namespace
        self.original_shape = original_shape
        self.shape = shape
        self.requests = {**dict(sorted(shape.requests.items())), "pods": 1}
        self.cpu = shape.requests.get("cpu", 0)
        self.memory = shape.requests.get("memory", 0)
        self.other_requests = tuple((name, n) for name, n in self.requests.items() if name not in ("cpu", "memory"))
        self.demand = demand
        self.requirements = demand.requirements
        self.tolerations = demand.tolerations
        self.ports = demand.ports
        self.counted = counted
        self.volumes = volumes
        self.attached = volumes.attached if volumes is not None else ()
        self.apart = volumes.apart if volumes is not None else ()
        self.devices = devices
        self.unsupported = unsupported(shape, volumes, devices is not None)
        self.of_new_nodes = NO_REQUIREMENTS
        self.contradictions: tuple[str, ...] = ()  # labels of which it asks what no node can have

    def __repr__(self) -> str:
        return f"PodClass({self.number}, {self.requests}, {self.requirements})"
