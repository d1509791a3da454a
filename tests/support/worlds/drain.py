"""Worlds with a node that is drained."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import DAEMONSET, Owner, Pod, PodShape, Toleration
from kerf.engine.record.decisions import DeletePod, EvictPod
from kerf.engine.record.observations import NodeClaimDeletionSeen, Observation
from tests.support.lives import PODS, claim_of, in_service, show_taint
from tests.support.world import World

CRITICAL = "system-node-critical"
DAEMON = Owner(DAEMONSET, "daemon")


def serving(**changes: object) -> World:
    """The node `n1` is in service, and empty."""
    world = in_service(**changes)
    for name in PODS:
        world.gone(name)
    return world


def put(world: World, name: str, *, grace: int | None = None, critical: bool = False, daemon: bool = False,
        tolerations: tuple[Toleration, ...] = (), **pod: object) -> Pod:  # fmt: skip
    """A pod runs on `n1`."""
    shape = PodShape(grace=grace, priority_class=CRITICAL if critical else "", tolerations=tolerations)
    digest, _ = content(shape)
    made = Pod(f"uid-{name}", "default", name, digest, node="n1", phase="Running", ready=True, started=world.now,
               owner=DAEMON if daemon else None)  # fmt: skip
    made = replace(made, **pod)
    world.see(Observation(made, {digest: shape}))
    return made


def drain(world: World) -> None:
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)


def evicted(world: World) -> list[str]:
    return [i.name for _, i in world.intents if isinstance(i, EvictPod)]


def forced(world: World) -> dict[str, int]:
    """Pod → seconds of grace."""
    return {i.name: i.grace for _, i in world.intents if isinstance(i, DeletePod)}
