"""What happens to a NodeClaim that is deleted, from its deletion to its end (D-137, D-139, D-159)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.record.decisions import DeleteNode, EvictPod, LaunchInstance, TaintNode, TerminateInstance
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation
from kerf.projections.status.nodeclaim import claim_conditions
from tests.support.lives import PODS, claim_of, in_service, show_taint, types
from tests.support.world import World, pool


def deleted(world: World) -> list[object]:
    """Somebody deletes the NodeClaim."""
    return [*world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))]


def emptied(world: World) -> None:
    """All pods leave the node, which shows its taint."""
    show_taint(world)
    for name in PODS:
        world.gone(name)


def test_d137_a_deleted_claim_is_drained_then_its_instance_ends_then_its_nodes_then_the_claim() -> None:
    world = in_service()
    assert deleted(world) == [TaintNode(claim_of(world).name, "n1")]
    world.answer_all()
    show_taint(world)
    assert {type(intent) for _, intent in world.intents} == {EvictPod}
    emptied(world)
    world.after(5_000)
    assert [type(intent) for _, intent in world.intents] == [TerminateInstance]
    world.answer_all()
    shown = claim_conditions(claim_of(world), world.runtime.state, world.now)
    conditions = {condition.type: condition.status for condition in shown}
    assert conditions["InstanceTerminating"] == "True"
    world.instance("i-1", "shutting-down")
    assert "claim.terminated" not in types(world)
    world.instance("i-1", "terminated")
    assert [type(intent) for _, intent in world.intents] == [DeleteNode]
    world.answer_all()
    assert "claim.terminated" not in types(world), "not while a Node of the instance is there"
    world.see(Observation(ObjectGone("node", "n1")))
    assert types(world)[-1] == "claim.terminated"


def test_d137_the_deadline_is_that_of_the_first_deletion() -> None:
    world = in_service(termination_grace_period=600_000)
    name = claim_of(world).name
    deleted(world)
    world.answer_all()
    show_taint(world)
    deadline = claim_of(world).deadline
    assert deadline == world.now + 600_000
    world.after(60_000)
    world.see(Observation(NodeClaimDeletionSeen(name, "kubectl")))
    assert world.runtime.state.facts.claims[name].deadline == deadline


def test_d137_a_claim_without_an_instance_asks_the_cloud_for_nothing() -> None:
    world = World()
    world.prepare()
    world.pending(*PODS)
    world.after(1_000)
    assert deleted(world) == []
    assert types(world)[-1] == "claim.cancelled"


def test_d139_the_grace_period_is_the_one_that_the_claim_was_made_with() -> None:
    world = in_service(termination_grace_period=600_000)
    world.see(Observation(pool(termination_grace_period=1_000)))
    deleted(world)
    world.answer_all()
    show_taint(world)
    assert claim_of(world).deadline == world.now + 600_000


def test_d159_pods_of_a_node_that_goes_get_capacity_though_no_move_made_a_replacement() -> None:
    """Also those that may leave only later."""
    world = in_service()
    for name in PODS:
        world.see(Observation(replace(world.pods[name], do_not_disrupt="true")))
    deleted(world)
    world.answer_all()
    show_taint(world)
    world.after(10_000)
    assert world.launches() == []
    world.see(Observation(replace(world.pods["a"], do_not_disrupt="")))
    found = [intent for _, intent in world.intents if isinstance(intent, LaunchInstance)]
    world.after(10_000)
    found += [intent for _, intent in world.intents if isinstance(intent, LaunchInstance)]
    assert len(found) == 1
    assert world.runtime.state.facts.claims[found[0].claim].pods == ("uid-a",)
