"""A small world: three types in two zones, no jitter, so that every time can be said in advance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.controllers.workloads import Deployment, PodTemplate
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.decisions import LaunchInstance, Offer
from kerf.engine.record.observations import NodeClassSeen

GIB = 1 << 30
NODE_CLASS = NodeClassRef("kerf.dev", "VirtualNodeClass", "default")


def instance_type(name: str, cpus: int, price: float, **more: Any) -> InstanceType:
    return InstanceType(
        name=name,
        capacity={"cpu": cpus * 1000, "memory": cpus * 4 * GIB, "pods": 110, **more},
        overhead={"cpu": 100},
        requirements={"kubernetes.io/arch": ("amd64",), "kubernetes.io/os": ("linux",)},
        offerings=tuple(
            Offering(zone=zone, capacity_type=kind, price=price * factor)
            for zone in ("zone-a", "zone-b")
            for kind, factor in (("on-demand", 1.0), ("spot", 0.3))
        ),
    )


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue(
        types=(
            instance_type("small", 2, 0.1),
            instance_type("large", 8, 0.4),
            instance_type("gpu", 8, 3.0, **{"nvidia.com/gpu": 1}),
        )
    )


@pytest.fixture
def world(catalogue: Catalogue) -> Simulation:
    simulation = Simulation(catalogue, clock=Clock(START), timing=Timing(join_jitter=0))
    simulation.cluster.apply(Namespace("default"))
    simulation.cloud.put_node_class(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True))
    return simulation


@pytest.fixture
def shape() -> Callable[..., PodShape]:
    def make(cpu: int = 500, app: str = "web", **more: Any) -> PodShape:
        return PodShape(requests={"cpu": cpu, "memory": GIB}, labels={"app": app}, **more)

    return make


@pytest.fixture
def deployment(shape: Callable[..., PodShape]) -> Callable[..., Deployment]:
    def make(replicas: int, name: str = "web", **more: Any) -> Deployment:
        return Deployment(f"uid-{name}", "default", name, replicas, PodTemplate(shape(app=name, **more)))

    return make


@pytest.fixture
def node() -> Callable[..., Node]:
    def make(name: str, cpus: int = 4, **more: Any) -> Node:
        room = {"cpu": cpus * 1000, "memory": cpus * 4 * GIB, "pods": 110}
        return Node(name=name, uid=f"uid-{name}", capacity=room, allocatable=room, ready=True, ready_since=1, **more)

    return make


@pytest.fixture
def order() -> Callable[..., LaunchInstance]:
    def make(claim: str = "pool-1", *types: str, capacity_type: str = "on-demand", **more: Any) -> LaunchInstance:
        return LaunchInstance(
            claim=claim,
            node_pool="pool",
            node_class=NODE_CLASS,
            capacity_type=capacity_type,
            offers=tuple(
                Offer(name, zone, 0.0) for name in types or ("small", "large") for zone in ("zone-a", "zone-b")
            ),
            requests={"cpu": 500},
            **more,
        )

    return make
