"""L-237: an instance that nobody here ended."""

from __future__ import annotations

import msgspec

from kerf.engine.record.decisions import DeleteNode, LaunchInstance
from kerf.engine.record.observations import EffectAnswered, ObjectGone, Observation
from tests.support.lives import claim_of, in_service, types


def test_the_node_of_a_vanished_instance_is_deleted_until_it_is_gone() -> None:
    world = in_service()
    (delete,) = world.instance("i-1", "gone")
    assert isinstance(delete, DeleteNode)
    ((ref, _),) = world.intents
    world.see(Observation(EffectAnswered(ref, False, "500")))
    (again,) = world.after(1_000)
    assert again == delete
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(msgspec.structs.replace(node, deleting=world.now)))
    assert claim_of(world).why == ""
    world.see(Observation(ObjectGone("node", "n1")))
    assert types(world)[-1] == "claim.instance-vanished"
    assert world.runtime.state.facts.claims == {}


def test_no_pod_is_planned_onto_a_vanished_instance() -> None:
    world = in_service()
    world.instance("i-1", "gone")
    world.pending("z", memory=64 * 2**20)
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]
