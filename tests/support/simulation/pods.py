"""Pods put into a simulated cluster, and where they come to run."""

from __future__ import annotations

from collections.abc import Callable

from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    Pod,
    PodShape,
)

Make = Callable[..., PodShape]
MakeNode = Callable[..., Node]


def put(world: Simulation, name: str, shape: PodShape) -> None:
    digest = world.cluster.api.keep_shape(shape)
    world.cluster.apply(Pod(name, "default", name, digest, created=world.clock.now))


def settle(world: Simulation) -> None:
    world.clock.advance(world.clock.now + 1_000)


def places(world: Simulation) -> dict[str, str]:
    return {pod.name: pod.node for pod in world.cluster.api.pods.values()}
