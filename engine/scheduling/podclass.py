"""A pod class: pods that scheduling cannot tell apart, compiled once."""

from __future__ import annotations

from kerf.engine.model.pods import PodShape
from kerf.engine.scheduling.demands import Demand
from kerf.engine.scheduling.topology_counts import PodCount

VOLUMES = "volumes"
RESOURCE_CLAIMS = "resource claims"


def unsupported(shape: PodShape) -> tuple[str, ...]:
    """What a pod carries that this version cannot honour."""
    found = []
    if shape.volumes:
        found.append(VOLUMES)
    if shape.resource_claims:
        found.append(RESOURCE_CLAIMS)
    return tuple(found)


class PodClass:
    """One class, compiled. `requests` include the resource `pods`; `number` counts classes in order of
    appearance; `demand` is all that its pods ask of a place but room; `counted` are the counts that they enter."""

    __slots__ = (
        "counted",
        "cpu",
        "demand",
        "given",
        "memory",
        "namespace",
        "number",
        "ports",
        "requests",
        "requirements",
        "shape",
        "tolerations",
        "unsupported",
    )

    def __init__(
        self,
        number: int,
        namespace: str,
        given: PodShape,
        shape: PodShape,
        demand: Demand,
        counted: tuple[PodCount, ...],
    ) -> None:
        """`given`: the shape before anything was given up."""
        self.number = number
        self.namespace = namespace
        self.given = given
        self.shape = shape
        self.requests = {**dict(sorted(shape.requests.items())), "pods": 1}
        self.cpu = shape.requests.get("cpu", 0)
        self.memory = shape.requests.get("memory", 0)
        self.demand = demand
        self.requirements = demand.requirements
        self.tolerations = demand.tolerations
        self.ports = demand.ports
        self.counted = counted
        self.unsupported = unsupported(shape)

    def __repr__(self) -> str:
        return f"PodClass({self.number}, {self.requests}, {self.requirements})"
