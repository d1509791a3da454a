"""What each action of a Timeline does to the world."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kerf.adapters.simulation.cluster.controllers.workloads import Deployment, PodTemplate, StatefulSet
from kerf.adapters.simulation.cluster.node_changes import UNSCHEDULABLE
from kerf.adapters.simulation.errors import AnswerLostError, NoSuchTargetError
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timeline import timeline as t
from kerf.adapters.simulation.timeline.perform import perform_action
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.decisions import LaunchInstance, RegisterNode
from kerf.engine.record.observations import InputRefused, InterruptionSeen, NodeClaimDeletionSeen

Order = Callable[..., LaunchInstance]
MakeDeployment = Callable[..., Deployment]
NOW = "0s"


@pytest.fixture
def three(world: Simulation, order: Order) -> list[str]:
    """Three instances, oldest first, that have joined: two on demand (in zones a and b), one spot."""
    launched = []
    for claim, kind, zone in (("c1", "on-demand", "zone-a"), ("c2", "on-demand", "zone-b"), ("c3", "spot", "zone-a")):
        asked = order(claim, "small", capacity_type=kind)
        offers = tuple(offer for offer in asked.offers if offer.zone == zone)
        asked = type(asked)(**{f: getattr(asked, f) for f in asked.__struct_fields__} | {"offers": offers})
        launched.append(world.cloud.launch(asked, intent="1.0", token=claim).instance)
    world.clock.advance(world.clock.now + 60_000)
    return launched


def messages(world: Simulation) -> list[tuple[str, str]]:
    polled = [observation.payload for observation in world.queue.poll()]
    return [(m.kind, m.instance) for m in polled if isinstance(m, InterruptionSeen)]


def test_instances_are_chosen_by_all_that_is_given_oldest_first(world: Simulation, three: list[str]) -> None:
    node = world.cluster.kubelets.node_of(three[1])
    for action, expected in (
        (t.Rebalance(at=NOW), three[:1]),
        (t.Rebalance(at=NOW, count=2), three[:2]),
        (t.Rebalance(at=NOW, count=0), three),
        (t.Rebalance(at=NOW, capacity_type="spot"), three[2:]),
        (t.Rebalance(at=NOW, zone="zone-a", count=0), [three[0], three[2]]),
        (t.Rebalance(at=NOW, node=node), [three[1]]),
        (t.Rebalance(at=NOW, claim="c2", instance_type="small", node_pool="pool"), [three[1]]),
    ):
        perform_action(world, action)
        assert messages(world) == [("rebalance_recommendation", name) for name in expected]
        world.queue.acknowledge()
    with pytest.raises(NoSuchTargetError, match="KERF811"):
        perform_action(world, t.Rebalance(at=NOW, instance_type="large"))


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (t.Interrupt(at=NOW, node_pool="poool"), "Is it pool?"),
        (t.Interrupt(at=NOW, zone="mars"), "None has zone mars: there is zone-a, zone-b"),
        (t.Interrupt(at=NOW, zone="zone-b", capacity_type="spot"), "Each field fits some, and none fits all"),
    ],
)
def test_an_action_that_fits_no_instance_is_told_what_there_is(
    world: Simulation, three: list[str], asked: t.Interrupt, hint: str
) -> None:
    with pytest.raises(NoSuchTargetError) as caught:
        perform_action(world, asked)
    assert caught.value.hint == hint


def test_an_action_before_the_first_instance_is_told_so(world: Simulation) -> None:
    with pytest.raises(NoSuchTargetError) as caught:
        perform_action(world, t.Interrupt(at=NOW))
    assert caught.value.hint == "No instance lives at this time"


def test_an_action_on_a_node_before_one_has_joined_is_told_so(world: Simulation, order: Order) -> None:
    world.cloud.launch(order("c1", "small"), intent="1.0", token="c1")
    world.clock.advance(world.clock.now + 5_000)
    with pytest.raises(NoSuchTargetError) as caught:
        perform_action(world, t.Interrupt(at=NOW, node="n-1"))
    assert caught.value.hint == "None has node n-1: there is none yet"


def test_actions_on_instances(world: Simulation, three: list[str]) -> None:
    """Each action on an instance sends the message that EC2 would send (A-346…A-349)."""
    perform_action(world, t.Maintenance(at=NOW, claim="c1"))
    perform_action(world, t.Interrupt(at=NOW, claim="c3"))
    perform_action(world, t.Reclaim(at=NOW, claim="c2"))
    assert messages(world) == [
        ("scheduled_change", three[0]),
        ("spot_interrupted", three[2]),
        ("instance_terminated", three[1]),
    ]
    perform_action(world, t.Vanish(at=NOW, claim="c1"))
    assert [world.cloud.status(name) for name in three] == ["gone", "shutting-down", "running"]


def test_cordon_and_uncordon(world: Simulation, three: list[str]) -> None:
    node = world.cluster.kubelets.node_of(three[0])
    perform_action(world, t.Cordon(at=NOW, claim="c1"))
    assert UNSCHEDULABLE in world.cluster.api.nodes[node].taints
    perform_action(world, t.Uncordon(at=NOW, node=node))
    assert UNSCHEDULABLE not in world.cluster.api.nodes[node].taints


def test_a_node_without_instance_is_meant_by_its_name(world: Simulation, node: Callable[..., Node]) -> None:
    world.cluster.apply(node("old"))
    perform_action(world, t.NodeNotReady(at=NOW, node="old", duration="2m"))
    world.clock.advance(world.clock.now + 60_000)
    assert not world.cluster.api.nodes["old"].ready
    world.clock.advance(world.clock.now + 60_000)
    assert world.cluster.api.nodes["old"].ready


def test_a_condition_of_a_node_for_a_while(world: Simulation, node: Callable[..., Node]) -> None:
    world.cluster.apply(node("old"))
    ill = t.NodeCondition(at=NOW, node="old", condition="StorageReady", duration="2m")
    perform_action(world, ill)
    (found,) = world.cluster.api.nodes["old"].conditions
    assert (found.type, found.status, found.since) == ("StorageReady", "False", world.clock.now)
    perform_action(world, ill)
    assert world.cluster.api.nodes["old"].conditions == (found,), "its time does not begin anew (D-2)"
    world.clock.advance(world.clock.now + 120_000)
    assert not world.cluster.api.nodes["old"].conditions


def test_instances_without_a_node_cannot_be_cordoned(world: Simulation, order: Order) -> None:
    world.cloud.launch(order(), intent="1.0", token="t")
    with pytest.raises(NoSuchTargetError, match="no nodes yet"):
        perform_action(world, t.Cordon(at=NOW))


def test_actions_on_the_cloud(world: Simulation, order: Order) -> None:
    perform_action(world, t.Price(at=NOW, instance_type="small", price=5.0))
    assert world.cloud.launch(order("c1"), intent="1.0", token="1").instance_type == "large"
    perform_action(world, t.Price(at=NOW, instance_type="small", factor=0.001))
    assert world.cloud.launch(order("c2"), intent="1.0", token="2").instance_type == "small"
    perform_action(world, t.Capacity(at=NOW, instance_type="small"))
    assert world.cloud.launch(order("c3"), intent="1.0", token="3").instance_type == "large"
    perform_action(world, t.RestoreCapacity(at=NOW))
    assert world.cloud.launch(order("c4"), intent="1.0", token="4").instance_type == "small"
    perform_action(world, t.NodeClassReady(at=NOW, name="default", ready=False, reason="Gone"))
    assert world.cloud.launch(order("c5"), intent="1.0", token="5").kind == "nodeclass-not-ready"
    perform_action(world, t.NodeClassReady(at=NOW, name="default"))
    perform_action(world, t.Throttle(at=NOW, duration="1s"))
    assert world.cloud.launch(order("c6"), intent="1.0", token="6").code == "RequestLimitExceeded"
    world.clock.advance(world.clock.now + 1_000)
    perform_action(world, t.LoseAnswer(at=NOW))
    with pytest.raises(AnswerLostError):
        world.cloud.launch(order("c7"), intent="1.0", token="7")


def test_a_bad_message_is_polled_as_refused_input(world: Simulation) -> None:
    perform_action(world, t.BadMessage(at=NOW, body="<xml>"))
    (message,) = world.queue.poll()
    assert isinstance(message.payload, InputRefused)
    assert "<xml>" in message.payload.message


def test_deleting_objects(world: Simulation, deployment: MakeDeployment, shape: Callable[..., PodShape]) -> None:
    cluster = world.cluster
    cluster.workloads.apply(deployment(1))
    cluster.workloads.apply(StatefulSet("uid-db", "default", "db", 1, PodTemplate(shape(app="db"))))
    agent = DaemonSet("uid-agent", "default", "agent", cluster.api.keep_shape(shape(app="agent")))
    cluster.workloads.apply_daemon_set(agent, PodTemplate(shape(app="agent")))
    cluster.apply(PodDisruptionBudget("uid-pdb", "default", "web"))
    cluster.apply(NodePool("pool", NodeClassRef("g", "K", "n")))
    world.clock.advance(world.clock.now)
    for kind, name in (
        ("Pod", "db-0"), ("StatefulSet", "db"), ("Deployment", "web"), ("DaemonSet", "agent"),
        ("PodDisruptionBudget", "web"), ("NodePool", "pool"), ("NodeClass", "default"),
    ):  # fmt: skip
        perform_action(world, t.Delete(at=NOW, kind=kind, name=name))
        with pytest.raises(NoSuchTargetError):
            perform_action(world, t.Delete(at=NOW, kind=kind, name=name))
    world.clock.advance(world.clock.now + 1_000)
    assert not any((cluster.api.pods, cluster.api.daemon_sets, cluster.api.budgets, cluster.api.pools))
    assert world.cloud.node_class("default") is None


def asked_claims(world: Simulation) -> list[NodeClaimDeletionSeen]:
    drained = [observation.payload for observation in world.cluster.drain_observations()]
    return [payload for payload in drained if isinstance(payload, NodeClaimDeletionSeen)]


@pytest.mark.parametrize("how", ["deleted", "marked"])
def test_the_claims_of_a_deleted_pool_are_deleted_and_those_that_come_later(
    world: Simulation, three: list[str], order: Order, how: str
) -> None:
    """L-256: by ownerReferences; a NodePool with a deletion timestamp is on its way already."""
    pool = NodePool("pool", NodeClassRef("g", "k", "default"))
    world.cluster.apply(pool)
    world.cluster.apply(NodePool("other", pool.node_class))
    world.cloud.end(three[1])
    if how == "deleted":
        perform_action(world, t.Delete(at=NOW, kind="NodePool", name="pool"))
    else:
        world.cluster.apply(replace(pool, deleting=world.clock.now))
    perform_action(world, t.Delete(at=NOW, kind="NodePool", name="other"))
    world.clock.advance(world.clock.now)
    assert asked_claims(world) == [NodeClaimDeletionSeen(claim, "garbage collector") for claim in ("c1", "c3")]
    world.cloud.launch(order("c4"), intent="2.0", token="c4")
    world.clock.advance(world.clock.now)
    assert asked_claims(world) == [NodeClaimDeletionSeen("c4", "garbage collector")]
    world.cluster.apply(pool)
    world.cloud.launch(order("c5"), intent="3.0", token="c5")
    world.clock.advance(world.clock.now)
    assert asked_claims(world) == []


def test_claims_are_deleted_by_name_or_chosen_by_their_instances(world: Simulation, three: list[str]) -> None:
    world.cluster.drain_observations()
    for action, expected in (
        (t.Delete(at=NOW, kind="NodeClaim", name="c2"), ["c2"]),
        (t.Delete(at=NOW, kind="NodeClaim", node_pool="pool", count=2), ["c1", "c2"]),
        (t.Delete(at=NOW, kind="NodeClaim", capacity_type="spot", count=0), ["c3"]),
    ):
        perform_action(world, action)
        assert [asked_claim.claim for asked_claim in asked_claims(world)] == expected
    with pytest.raises(NoSuchTargetError, match="KERF811"):
        perform_action(world, t.Delete(at=NOW, kind="NodeClaim", name="nobody"))


def test_a_scale_that_means_the_other_kind_is_told_so(world: Simulation, shape: Callable[..., PodShape]) -> None:
    world.cluster.workloads.apply(StatefulSet("uid-db", "default", "db", 1, PodTemplate(shape(app="db"))))
    with pytest.raises(NoSuchTargetError, match="Write kind: StatefulSet"):
        perform_action(world, t.Scale(at=NOW, name="db", replicas=2))


def test_a_scale_without_the_namespace_is_asked_about_it(world: Simulation, deployment: MakeDeployment) -> None:
    world.cluster.workloads.apply(deployment(1, "wed"))
    world.cluster.workloads.apply(replace(deployment(1, "web"), namespace="shop"))
    with pytest.raises(NoSuchTargetError) as caught:
        perform_action(world, t.Scale(at=NOW, name="web", replicas=2))
    assert caught.value.hint == "Is it shop/web?"


def test_deleting_nodes_and_claims_tells_kerf_who_asked(world: Simulation, three: list[str]) -> None:
    """L-193, L-496: a Node with kerf's finalizer stays until kerf is done with it."""
    node = world.cluster.kubelets.node_of(three[0])
    world.cluster.register(RegisterNode("c1", node), intent="1.0")
    world.cluster.drain_observations()
    perform_action(world, t.Delete(at=NOW, kind="Node", name=node, actor="alice"))
    perform_action(world, t.Delete(at=NOW, kind="NodeClaim", name="c2", actor="bob"))
    asked = [o.payload for o in world.cluster.drain_observations() if isinstance(o.payload, NodeClaimDeletionSeen)]
    assert asked == [NodeClaimDeletionSeen("c1", "alice"), NodeClaimDeletionSeen("c2", "bob")]
    assert world.cluster.api.nodes[node].deleting == world.clock.now
    unregistered = world.cluster.kubelets.node_of(three[1])
    perform_action(world, t.Delete(at=NOW, kind="Node", name=unregistered))
    assert unregistered not in world.cluster.api.nodes
