"""L-160, L-161, L-261: which Node belongs to which claim, also when names and provider ids are not one to one."""

from __future__ import annotations

import msgspec

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.decisions import DeleteNode, RegisterNode
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation
from kerf.engine.state import snapshot
from kerf.engine.state.node_of_claim import node_of
from tests.support.lives import PROVIDER, claim_of, in_service, launched
from tests.support.world import World


def same_links(world: World) -> bool:
    """Whether the indexes are those that the facts alone give."""
    state = world.runtime.state
    twin = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    names = ("nodes_by_provider", "claim_by_node", "claim_by_provider", "claim_by_instance")
    return all(getattr(state.indexes, name) == getattr(twin.indexes, name) for name in names)


def test_l161_of_two_nodes_of_one_instance_none_registers() -> None:
    world = launched()
    node = Node("n1", provider_id=PROVIDER)
    world.see(Observation(node), Observation(msgspec.structs.replace(node, name="n2")))
    assert world.intents == []
    (register,) = world.see(Observation(ObjectGone("node", "n1")))
    assert isinstance(register, RegisterNode)
    assert register.node == "n2"
    assert same_links(world)


def test_l190_every_node_of_an_instance_is_deleted_before_its_claim_is_over() -> None:
    world = in_service()
    world.node("n2", PROVIDER)
    node = node_of(claim_of(world), world.runtime.state)
    assert node is not None
    assert node.name == "n1"
    assert same_links(world)
    world.instance("i-1", "gone")
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    world.after(60_000)
    assert [intent.node for _, intent in world.intents if isinstance(intent, DeleteNode)] == ["n2"]
    world.bind("a", "n2")
    world.see(Observation(ObjectGone("node", "n2")))
    assert world.runtime.state.facts.claims == {}
    assert same_links(world)


def test_a_node_name_that_another_instance_took_is_no_longer_the_claims() -> None:
    world = in_service()
    world.node("n1", "aws:///us-west-2a/i-2")
    assert node_of(claim_of(world), world.runtime.state) is None
    assert same_links(world)
    world.see(Observation(ObjectGone("node", "n1")))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.pending("z")
    world.after(1_000)
    assert same_links(world)
