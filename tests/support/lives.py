"""Worlds at the points of a node's life where tests begin."""

from __future__ import annotations

from kerf.engine.disruption.consolidation.young_pods import LATELY
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Intent
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation
from tests.support.world import World, pool

UNREGISTERED = Taint("karpenter.sh/unregistered", "NoExecute")
DISRUPTED = Taint("karpenter.sh/disrupted", "NoSchedule")
PROVIDER = "aws:///us-west-2a/i-1"
PODS = "abcde"


def asked(**changes: object) -> World:
    """A launch has been asked for; `world.launches()` has it."""
    world = World()
    world.prepare(pool(**changes))  # type: ignore[arg-type]
    world.pending(*PODS)
    world.after(1_000)
    return world


def launched(**changes: object) -> World:
    world = asked(**changes)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    return world


def in_service(**changes: object) -> World:
    """The node `n1` is initialized and runs pods a to e."""
    world = launched(**changes)
    joins(world)
    return world


def joins(world: World) -> None:
    """The instance that was launched is the node `n1`, and gets its pods."""
    starts(world)
    for name in PODS:
        world.bind(name, "n1")


def starts(world: World) -> None:
    """The instance that was launched is the node `n1`, in service. No pod is bound to it yet."""
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    world.node("n1", PROVIDER, registered="true")
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true")


def half_empty(**changes: object) -> World:
    """The node keeps two of its five pods, which came ten minutes ago: c5.large would do for them."""
    world = in_service(**changes)
    world.after(LATELY)
    for name in PODS[:3]:
        world.gone(name)
    return world


def decide(world: World) -> list[Intent]:
    """A disruption pass comes, and then the second look at what it proposed (D-108): the intents of that."""
    world.after(10_000)
    return world.after(15_000)


def show_taint(world: World) -> None:
    """The watch shows the disrupted taint on `n1`."""
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))


def drained(world: World) -> None:
    """Somebody deletes the NodeClaim of `n1`, and its pods have gone: the end of its instance is asked for."""
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    world.answer_all()
    for name in PODS:
        world.gone(name)
    world.after(5_000)


def ends(world: World) -> None:
    """The cloud has accepted that, and half a minute later the instance and its Node are gone."""
    world.after(30_000)
    world.instance("i-1", "terminated")
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))


def claim_of(world: World) -> NodeClaim:
    (claim,) = world.runtime.state.facts.claims.values()
    return claim


def types(world: World) -> list[str]:
    """The entry types of the record, in order."""
    return [entry.type for entry in world.store.entries]
