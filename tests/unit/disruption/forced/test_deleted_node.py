"""L-193: whoever deletes a Node deletes its claim, also when the Node was gone before kerf saw it going."""

from __future__ import annotations

import msgspec

from kerf.engine.record.decisions import TerminateInstance
from kerf.engine.record.observations import ObjectGone, Observation
from tests.support.lives import PODS, PROVIDER, claim_of, decide, in_service, launched


def test_the_instance_of_a_node_that_is_gone_is_ended() -> None:
    world = in_service()
    (end,) = world.see(Observation(ObjectGone("node", "n1")))
    assert end == TerminateInstance(claim_of(world).name, "i-1")
    assert (claim_of(world).why, claim_of(world).detail) == ("deleted", "n1")


def test_the_deletion_of_its_node_by_kerf_is_no_stronger_reason() -> None:
    world = in_service()
    for name in PODS:
        world.gone(name)
    decide(world)
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(msgspec.structs.replace(node, deleting=world.now)))
    assert claim_of(world).why == "empty"


def test_a_node_that_has_not_registered_may_come_again() -> None:
    world = launched()
    world.node("n1", PROVIDER, ready=False)
    world.answer_all(ok=False, code="409")
    assert world.see(Observation(ObjectGone("node", "n1"))) == []
    assert claim_of(world).state == "launched"
