"""The life of nodes and of the pods on them."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

import pytest
from msgspec.structs import replace

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.cluster.controllers.workloads import Deployment
from kerf.adapters.simulation.cluster.node_changes import UNREACHABLE
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model import labels as names
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Taint
from kerf.engine.record.decisions import (
    DeleteNode,
    InitializeNode,
    LaunchInstance,
    RegisterNode,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.observations import NodeClaimDeletionSeen

Order = Callable[..., LaunchInstance]
MakeNode = Callable[..., Node]
MakeDeployment = Callable[..., Deployment]
TEAM = Taint("team", "NoSchedule", "a")
STARTUP = Taint("example.com/agent", "NoExecute")


def at(world: Simulation, seconds: float) -> None:
    world.clock.advance(START + int(seconds * 1000))


def launch(world: Simulation, order: LaunchInstance) -> str:
    return world.cloud.launch(order, intent="1.0", token=order.claim).instance


def joined(world: Simulation, order: LaunchInstance) -> str:
    """A registered, ready node of its own; the clock is at 60 s."""
    instance = launch(world, order)
    at(world, 45)
    node = world.cluster.kubelets.node_of(instance)
    world.cluster.register(RegisterNode(order.claim, node), intent="2.0")
    at(world, 60)
    return node


def test_a_node_joins_with_labels_and_taints_and_becomes_ready_step_by_step(world: Simulation, order: Order) -> None:
    """A-259, L-99, L-101, L-172: not-ready goes with Ready, startup taints go with their daemon, unregistered
    stays."""
    pool = NodePool("pool", NodeClassRef("g", "K", "n"), startup_taints=(STARTUP,))
    world.cluster.apply(pool)
    instance = launch(world, order(labels={"team": "a"}, taints=(TEAM, STARTUP)))
    at(world, 29.9)
    assert world.cluster.kubelets.node_of(instance) == ""
    at(world, 30)
    node = world.cluster.api.nodes[world.cluster.kubelets.node_of(instance)]
    assert node.provider_id == f"virtual:///zone-a/{instance}"
    assert node.labels == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "team": "a",
        names.INSTANCE_TYPE: "small",
        names.ZONE: "zone-a",
        names.CAPACITY_TYPE: "on-demand",
        names.HOSTNAME: node.name,
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/instance-type": "small",
        "failure-domain.beta.kubernetes.io/zone": "zone-a",
        "topology.ebs.csi.aws.com/zone": "zone-a",
    }
    assert node.allocatable["cpu"] == 1_900
    assert not node.ready
    taints = [TEAM.key, STARTUP.key, names.UNREGISTERED_TAINT, "node.kubernetes.io/not-ready"]
    assert [taint.key for taint in node.taints] == taints
    at(world, 40)
    node = world.cluster.api.nodes[node.name]
    assert (node.ready, node.ready_since) == (True, START + 40_000)
    assert [taint.key for taint in node.taints] == taints[:3]
    at(world, 45)
    assert [taint.key for taint in world.cluster.api.nodes[node.name].taints] == [TEAM.key, names.UNREGISTERED_TAINT]


def test_device_resources_are_allocatable_only_after_their_plugin_started(world: Simulation, order: Order) -> None:
    """Device resources are allocatable only after their plugin started (L-174)."""
    instance = launch(world, order("pool-1", "gpu"))
    at(world, 44.9)
    node = world.cluster.kubelets.node_of(instance)
    assert world.cluster.api.nodes[node].capacity["nvidia.com/gpu"] == 1
    assert world.cluster.api.nodes[node].allocatable["nvidia.com/gpu"] == 0
    at(world, 45)
    assert world.cluster.api.nodes[node].allocatable["nvidia.com/gpu"] == 1


def test_registration_syncs_and_initialization_labels(world: Simulation, order: Order) -> None:
    """Registration syncs labels and taints, initialization sets its label (L-163, L-164, L-176, L-484)."""
    instance = launch(world, order())
    at(world, 30)
    node = world.cluster.kubelets.node_of(instance)
    world.cluster.apply(
        replace(world.cluster.api.nodes[node], taints=(TEAM, Taint(names.UNREGISTERED_TAINT, "NoExecute")))
    )
    write = RegisterNode(
        "pool-1",
        node,
        labels={"x": "2"},
        annotations={"karpenter.sh/a": "b"},
        taints=(Taint("team", "NoSchedule", "b"),),
    )
    assert world.cluster.register(write, intent="2.0").ok
    seen = world.cluster.api.nodes[node]
    assert seen.taints == (TEAM,)
    assert (seen.labels["x"], seen.labels[names.REGISTERED]) == ("2", "true")
    assert seen.annotations == {"karpenter.sh/a": "b"}
    assert world.cluster.initialize(InitializeNode("pool-1", node), intent="3.0").ok
    assert world.cluster.api.nodes[node].labels[names.INITIALIZED] == "true"


def test_taints_are_not_synced_onto_a_node_that_forbids_it(world: Simulation, node: MakeNode) -> None:
    """L-485: only the exact text "true" counts."""
    for name, value, expected in (("a", "true", ()), ("b", "True", (TEAM,))):
        world.cluster.apply(node(name, labels={names.DO_NOT_SYNC_TAINTS: value}))
        world.cluster.register(RegisterNode("c", name, taints=(TEAM,)), intent="1.0")
        assert world.cluster.api.nodes[name].taints == expected


def test_tainting_and_untainting(world: Simulation, node: MakeNode) -> None:
    """L-196: a taint of the same key and another effect goes."""
    world.cluster.apply(node("n", taints=(Taint(names.DISRUPTED_TAINT, "NoExecute"),)))
    assert world.cluster.taint(TaintNode("c", "n"), intent="1.0").ok
    seen = world.cluster.api.nodes["n"]
    assert seen.taints == (Taint(names.DISRUPTED_TAINT, "NoSchedule"),)
    assert seen.labels[names.EXCLUDE_FROM_LB] == "karpenter"
    assert world.cluster.untaint(UntaintNode("c", "n"), intent="1.1").ok
    seen = world.cluster.api.nodes["n"]
    assert seen.taints == ()
    assert names.EXCLUDE_FROM_LB not in seen.labels


def test_writes_to_a_node_that_is_not_there_are_answered_404(world: Simulation) -> None:
    cluster = world.cluster
    answers = [
        cluster.register(RegisterNode("c", "n"), intent="1.0"),
        cluster.initialize(InitializeNode("c", "n"), intent="1.1"),
        cluster.taint(TaintNode("c", "n"), intent="1.2"),
        cluster.untaint(UntaintNode("c", "n"), intent="1.3"),
        cluster.delete_node(DeleteNode("c", "n"), intent="1.4"),
    ]
    assert [(answer.ok, answer.code) for answer in answers] == [(False, "404")] * 5


def test_pods_start_once_their_node_is_ready_and_end_within_their_grace(
    world: Simulation, order: Order, deployment: MakeDeployment
) -> None:
    world.cluster.workloads.apply(deployment(1))
    node = joined(world, order())
    (pod,) = world.cluster.api.pods.values()
    assert (pod.node, pod.phase, pod.ready) == (node, "Running", True)
    assert pod.started == START + 45_000 + 100 + 2_000
    world.cluster.api.delete_pod(pod)
    assert world.cluster.api.pods[pod.uid].deleting == START + 60_000 + 30_000
    at(world, 60.999)
    assert pod.uid in world.cluster.api.pods
    at(world, 61)
    assert pod.uid not in world.cluster.api.pods


@pytest.mark.parametrize(("grace", "gone_after"), [(0, 0), (1, 1_000), (None, 1_000)])
def test_a_pod_ends_after_its_grace_or_its_own_time_to_stop(
    world: Simulation, node: MakeNode, grace: int | None, gone_after: int
) -> None:
    world.cluster.apply(node("n"))
    digest = world.cluster.api.keep_shape(PodShape())
    world.cluster.apply(Pod("u", "default", "p", digest, node="n", phase="Running"))
    world.cluster.api.delete_pod(world.cluster.api.pods["u"], grace)
    if gone_after:
        at(world, gone_after / 1000 - 0.001)
        assert "u" in world.cluster.api.pods
    at(world, gone_after / 1000)
    assert "u" not in world.cluster.api.pods


def test_a_shorter_grace_shortens_and_a_longer_one_does_nothing(world: Simulation, node: MakeNode) -> None:
    """A shorter grace shortens and a longer one does nothing (D-152)."""
    world.cluster.apply(node("n"))
    world.cluster.kubelets.silence("n")
    digest = world.cluster.api.keep_shape(PodShape(grace=600))
    world.cluster.apply(Pod("u", "default", "p", digest, node="n", phase="Running"))
    for grace, expected in ((None, 600), (60, 60), (300, 60)):
        world.cluster.api.delete_pod(world.cluster.api.pods["u"], grace)
        assert world.cluster.api.pods["u"].deleting == START + expected * 1000


def test_an_ended_instance_takes_its_node_away_and_its_pods_are_replaced(
    world: Simulation, order: Order, deployment: MakeDeployment
) -> None:
    """Not ready after 40 s of silence; a Node with kerf's finalizer then waits for kerf, with its deletion
    seen."""
    world.cluster.workloads.apply(deployment(1))
    node = joined(world, order())
    (pod,) = world.cluster.api.pods.values()
    world.cluster.drain_observations()
    world.cloud.vanish(next(iter(world.cloud.instances)))
    at(world, 99.9)
    assert world.cluster.api.nodes[node].ready
    at(world, 100)
    assert not world.cluster.api.nodes[node].ready
    assert all(taint in world.cluster.api.nodes[node].taints for taint in UNREACHABLE)
    assert not world.cluster.api.pods[pod.uid].ready
    at(world, 105)
    assert world.cluster.api.nodes[node].deleting == START + 105_000
    asked = [o.payload for o in world.cluster.drain_observations() if isinstance(o.payload, NodeClaimDeletionSeen)]
    assert asked == [NodeClaimDeletionSeen("pool-1", "cloud-node-lifecycle-controller")]
    assert world.cluster.delete_node(DeleteNode("pool-1", node), intent="9.0").ok
    assert node not in world.cluster.api.nodes
    at(world, 125)
    assert pod.uid not in world.cluster.api.pods
    assert [p.node for p in world.cluster.api.pods.values()] == [""]


def test_a_node_without_finalizer_goes_when_its_instance_has_ended(world: Simulation, order: Order) -> None:
    """L-495: a node that joined unregistered is left to the cloud's controller."""
    instance = launch(world, order())
    at(world, 41)
    world.cloud.terminate(instance, intent="1.0")
    at(world, 41 + 45)
    assert world.cluster.api.nodes == {}


def test_an_instance_that_ends_before_it_joins_never_joins(world: Simulation, order: Order) -> None:
    instance = launch(world, order())
    at(world, 20)
    world.cloud.terminate(instance, intent="1.0")
    at(world, 300)
    assert world.cluster.api.nodes == {}


def test_a_silent_kubelet_loses_its_pods_after_five_minutes_and_may_come_back(
    world: Simulation, order: Order, deployment: MakeDeployment
) -> None:
    world.cluster.workloads.apply(deployment(1))
    node = joined(world, order())
    world.cluster.lifecycle.silence(node, 600_000)
    at(world, 100 + 299)
    assert len(world.cluster.api.pods) == 1
    at(world, 100 + 300)
    assert sorted((bool(p.deleting), p.node) for p in world.cluster.api.pods.values()) == [(False, ""), (True, node)]
    at(world, 60 + 610)
    (pod,) = world.cluster.api.pods.values()
    assert (pod.node, pod.ready) == (node, True)
    assert world.cluster.api.nodes[node].taints == ()


def test_pods_of_a_node_that_comes_back_in_time_are_ready_again(
    world: Simulation, order: Order, deployment: MakeDeployment
) -> None:
    world.cluster.workloads.apply(deployment(1))
    node = joined(world, order())
    (before,) = world.cluster.api.pods.values()
    world.cluster.lifecycle.silence(node, 120_000)
    at(world, 100)
    assert not world.cluster.api.pods[before.uid].ready
    at(world, 180)
    assert world.cluster.api.pods == {before.uid: before}
    at(world, 1_000)
    assert world.cluster.api.pods == {before.uid: before}


def test_a_node_that_falls_silent_before_it_is_ready_becomes_ready_when_it_comes_back(
    world: Simulation, order: Order
) -> None:
    instance = launch(world, order())
    at(world, 35)
    node = world.cluster.kubelets.node_of(instance)
    world.cluster.lifecycle.silence(node, 60_000)
    at(world, 94)
    assert not world.cluster.api.nodes[node].ready
    at(world, 95)
    assert world.cluster.api.nodes[node].ready
    assert [taint.key for taint in world.cluster.api.nodes[node].taints] == [names.UNREGISTERED_TAINT]


def test_a_short_silence_is_not_noticed(world: Simulation, order: Order) -> None:
    node = joined(world, order())
    world.cluster.drain_observations()
    world.cluster.lifecycle.silence(node, 30_000)
    at(world, 300)
    assert world.cluster.drain_observations() == []


def test_node_names_stay_different_and_valid(world: Simulation, order: Order) -> None:
    for index in range(600):
        launch(world, order(f"pool-{index}"))
    at(world, 60)
    assert len(world.cluster.api.nodes) == 600
    assert all(ip_address(name.removeprefix("ip-").replace("-", ".")) for name in world.cluster.api.nodes)


def test_l163_a_startup_taint_that_comes_with_a_late_registration_goes_too(world: Simulation, order: Order) -> None:
    """Its daemon looks at the node, not at the clock: by simulation seeds, nodes stayed uninitialized for ever."""
    world.cluster.apply(NodePool("pool", NodeClassRef("g", "K", "n"), startup_taints=(STARTUP,)))
    instance = launch(world, order(taints=(STARTUP,)))
    at(world, 100)
    name = world.cluster.kubelets.node_of(instance)
    assert STARTUP not in world.cluster.api.nodes[name].taints
    world.cluster.register(RegisterNode("c", name, taints=(STARTUP,)), intent="2.0")
    assert STARTUP in world.cluster.api.nodes[name].taints
    at(world, 106)
    assert STARTUP not in world.cluster.api.nodes[name].taints
