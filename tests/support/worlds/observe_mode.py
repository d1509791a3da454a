"""Worlds in observe mode, in which a Karpenter acts."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.record.observations import Observation
from tests.support.lives import PROVIDER
from tests.support.manifests.nodeclaim_objects import claim
from tests.support.world import Mi, World, pool

CAPACITY = {"cpu": 1930, "memory": 6903 * Mi, "pods": 29}


def watching(**changes: object) -> World:
    made = World(observe=True)
    made.prepare(pool(**changes))  # type: ignore[arg-type]
    return made


def shown(world: World, given: NodeClaimObject) -> None:
    world.see(Observation(replace(given, capacity=CAPACITY, allocatable=CAPACITY)))


def with_node(world: World) -> World:
    world.node("n1", PROVIDER, registered="true", initialized="true")
    return world


def in_use(world: World) -> None:
    """Karpenter's node runs the pods a and b."""
    world.pending("a", "b")
    world.after(1_000)
    shown(world, claim(1))
    with_node(world)
    shown(world, claim(3))
    world.bind("a", "n1")
    world.bind("b", "n1")
