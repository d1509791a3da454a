"""EC2 tells of the end of every instance, also of one that kerf has ended: that is no interruption (A-348, A-362)."""

from __future__ import annotations

import pytest

from kerf.engine.record.observations import (
    InstanceSeen,
    InterruptionSeen,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from tests.support.lives import PODS, claim_of, in_service, show_taint, types
from tests.support.metrics import counted, value
from tests.support.world import World


def ending(**changes: object) -> World:
    """A user has deleted the claim, its pods have left, and EC2 is asked to end the instance."""
    world = in_service(**changes)
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "alice")))
    show_taint(world)
    world.answer_all()
    for name in PODS:
        world.gone(name)
    world.after(5_000)
    assert claim_of(world).effect("terminate") is not None
    return world


@pytest.mark.parametrize("kind", ["instance_terminated", "instance_stopped"])
@pytest.mark.parametrize("answered", [True, False], ids=["answered", "on its way"])
def test_a362_the_news_of_an_end_that_kerf_asked_for_changes_nothing(kind: str, answered: bool) -> None:
    world = ending()
    if answered:
        world.answer_all()
    assert world.see(Observation(InterruptionSeen("m-1", kind, "i-1", sent=world.now))) == []
    assert (claim_of(world).why, claim_of(world).detail) == ("deleted", "alice")
    world.see(Observation(InstanceSeen("i-1", "gone")), Observation(ObjectGone("node", "n1")))
    assert "claim.reason-raised" not in types(world)
    assert world.store.entries[-1].payload.why == "deleted"
    assert value(counted(world), "karpenter_nodeclaims_disrupted_total") == 0


def test_an_end_that_somebody_else_brings_about_while_the_node_drains_is_an_interruption() -> None:
    world = in_service()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "alice")))
    show_taint(world)
    world.see(Observation(InterruptionSeen("m-1", "instance_terminated", "i-1", sent=world.now)))
    assert (claim_of(world).why, claim_of(world).detail) == ("interrupted", "instance_terminated")


def test_a355_a_warning_about_an_instance_that_ends_marks_the_offering_all_the_same() -> None:
    world = ending(capacity_type="spot")
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1", sent=world.now)))
    assert "spot|m5.large|us-west-2a" in world.runtime.state.facts.unavailable, "the zone takes instances back (A-355)"
