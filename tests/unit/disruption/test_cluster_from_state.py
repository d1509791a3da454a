"""What disruption sees of the state (docs/rules/disruption.md 0.2, docs/rules/lifecycle.md 5).

Which half of a node speaks, and what counts as going, as promised, as quiet.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.cluster import ClusterNode
from kerf.engine.disruption.cluster_from_state import NEVER, cluster_of, quiet_at
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.labels import DO_NOT_DISRUPT
from kerf.engine.model.reasons import Reason
from kerf.engine.record.observations import Observation
from kerf.engine.state.provisioning_window import nomination_period
from kerf.engine.state.state import LaunchedFor
from tests.support.lives import PODS, claim_of, in_service, launched
from tests.support.world import World, pool


def seen(world: World, name: str = "") -> ClusterNode:
    """The node of the claim, or the named one that has none."""
    nodes = cluster_of(world.runtime.state, world.now).nodes
    return next(node for node in nodes if node.name == name or (not name and node.place.claim))


def shown(world: World, **changes: object) -> None:
    world.see(Observation(replace(world.runtime.state.facts.nodes["n1"], **changes)))


def excluded(world: World) -> str:
    cluster = cluster_of(world.runtime.state, world.now)
    found = eligibility.judge_node(seen(world), cluster)
    return found.code if isinstance(found, Reason) else ""


def test_d6_l264_before_there_is_a_node_the_claim_speaks_and_then_the_node_alone() -> None:
    annotated = {DO_NOT_DISRUPT: "true"}
    world = launched(annotations=annotated)
    assert seen(world).annotations[DO_NOT_DISRUPT] == "true"
    world = in_service(annotations=annotated)
    world.after(60_000)
    assert DO_NOT_DISRUPT not in seen(world).annotations, "the Node of this world has none"
    assert excluded(world) == ""
    shown(world, annotations=annotated)
    assert excluded(world) == "do-not-disrupt"


def test_d5_l263_a_node_is_initialized_when_its_claim_says_so_and_an_unmanaged_one_always() -> None:
    world = launched()
    world.see(Observation(Node("foreign", uid="u", ready=True, created=world.now)))
    assert not seen(world).initialized
    assert seen(world, "foreign").initialized
    assert not seen(world, "foreign").managed


def test_d7_l268_what_is_going() -> None:
    """Without a claim a Node that is being deleted; of a claim that has to go the node at once."""
    world = in_service()
    world.see(Observation(Node("foreign", uid="u", ready=True, created=world.now, deleting=world.now)))
    assert seen(world, "foreign").marked
    assert not seen(world).marked
    shown(world, deleting=world.now)
    assert seen(world).marked
    assert claim_of(world).why == "deleted"


def test_d8_l282_a_planned_node_is_promised_for_twice_the_batch_and_to_the_moment() -> None:
    world = in_service()
    world.after(60_000)
    world.gone("a")
    world.pending("z")
    world.after(1_000)
    until = claim_of(world).nominated_until
    assert until == world.now + nomination_period(world.settings) == world.now + 2 * world.settings.batch_max
    assert seen(world).nominated
    world.bind("z", "n1")
    world.after(until - 1 - world.now)
    assert seen(world).nominated
    world.after(1)
    assert not seen(world).nominated


def test_d55_d56_d57_l244_a_node_becomes_consolidatable_when_its_pods_have_been_quiet() -> None:
    world = in_service(consolidate_after=300_000)
    claim, state = claim_of(world), world.runtime.state
    world.after(60_000)
    world.gone("a")
    assert claim.last_pod_event == world.now
    assert quiet_at(claim, state) == world.now + 300_000
    assert not seen(world).consolidatable
    world.after(300_000)
    assert seen(world).consolidatable
    world.see(Observation(pool(consolidate_after=None)))
    assert quiet_at(claim, state) == NEVER
    world.see(Observation(pool(consolidate_after=0)))
    assert seen(world).consolidatable
    world.see(Observation(pool(replicas=1)))
    assert quiet_at(claim, state) == NEVER, "of a pool of fixed size never"


def test_l267_l270_pods_that_have_ended_take_no_room() -> None:
    world = in_service()
    before = seen(world).place.available["memory"]
    ended = replace(world.pods["a"], phase="Succeeded", node="n1")
    world.see(Observation(ended))
    after = seen(world).place.available["memory"]
    assert after - before == 1024 * 2**20
    assert [pod.name for pod in seen(world).pods] == list(PODS[1:])


def test_l284_d27_what_may_change_a_decision_has_a_pass_look_again() -> None:
    world = in_service()
    world.after(60_000)
    facts = world.runtime.state.facts
    assert facts.moves_changed == 0
    world.gone("a")
    assert facts.moves_changed == world.now
    world.after(60_000)
    assert facts.moves_changed == 0
    shown(world, annotations={DO_NOT_DISRUPT: "true"})
    assert facts.moves_changed == world.now
    world.after(60_000)
    world.see(Observation(pool(weight=7)))
    assert facts.moves_changed == world.now


def test_l254_the_nodes_of_a_pool_that_is_not_ready_go_all_the_same() -> None:
    world = in_service()
    for name in PODS:
        world.gone(name)
    world.see(Observation(pool(ready=False)))
    world.after(60_000)
    world.after(60_000)
    assert claim_of(world).why == "empty"


def test_d88_pods_that_wait_for_another_node_get_none_with_a_move() -> None:
    """Found by a simulation seed: nodes of drifted ones were launched with one more for a pod, each time, whose nodes
    somebody tainted."""
    world = in_service()
    world.pending("z")
    state, uid = world.runtime.state, world.pods["z"].uid
    assert [pod.uid for pod in cluster_of(state, world.now).pending] == [uid]
    state.facts.launched_for[uid] = LaunchedFor(claim_of(world).name, world.now, times=3)
    assert cluster_of(state, world.now).pending == ()
    assert [pod.uid for pod in cluster_of(state, world.now + 40_000).pending] == [uid]
