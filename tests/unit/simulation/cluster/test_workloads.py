"""Deployments, StatefulSets and DaemonSets."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from kerf.adapters.simulation.cluster.controllers.workloads import Deployment, PodTemplate, StatefulSet
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, PodShape, Taint
from kerf.engine.record.observations import ObjectGone

MakeDeployment = Callable[..., Deployment]
MakeShape = Callable[..., PodShape]
MakeNode = Callable[..., Node]


def settle(world: Simulation, time: int = 10_000) -> None:
    world.clock.advance(world.clock.now + time)


def daemon_set(world: Simulation, shape: PodShape) -> DaemonSet:
    daemons = DaemonSet("uid-agent", "default", "agent", world.cluster.api.keep_shape(shape))
    world.cluster.workloads.apply_daemon_set(daemons, PodTemplate(shape))
    return daemons


def test_a_deployment_keeps_its_replicas_with_generated_names(world: Simulation, deployment: MakeDeployment) -> None:
    world.cluster.workloads.apply(deployment(3))
    settle(world)
    pods = list(world.cluster.api.pods.values())
    assert len({pod.name for pod in pods}) == 3
    assert all(re.fullmatch(r"web-[a-z0-9]{8}-[a-z0-9]{5}", pod.name) for pod in pods)
    assert {pod.owner.kind for pod in pods if pod.owner} == {"apps/v1/ReplicaSet"}
    assert {world.cluster.api.shape(pod).labels["pod-template-hash"] for pod in pods} == {pods[0].name.split("-")[1]}


def test_scaling_down_gives_up_unbound_pods_first(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    world.cluster.apply(node("n", cpus=1))
    world.cluster.workloads.apply(deployment(4))
    settle(world)
    bound = {pod.uid for pod in world.cluster.api.pods.values() if pod.node}
    assert len(bound) == 2
    world.cluster.workloads.apply(deployment(2))
    settle(world)
    assert set(world.cluster.api.pods) == bound


def test_scaling_down_gives_up_the_young_and_of_pods_of_about_one_age_any(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    """As Kubernetes: an age counts by its binary logarithm. The youngest pods, which one node got last, would leave
    many nodes empty."""
    for name in "abcdef":
        world.cluster.apply(node(name, cpus=1))
    world.cluster.workloads.apply(deployment(6))
    settle(world)
    old = set(world.cluster.api.pods)
    world.cluster.workloads.apply(deployment(12))
    settle(world)
    assert all(pod.node for pod in world.cluster.api.pods.values())
    world.cluster.workloads.apply(deployment(6))
    settle(world)
    assert set(world.cluster.api.pods) == old, "the others are 10 s old, these 20 s"
    world.cluster.workloads.apply(deployment(12))
    settle(world, 400_000)
    known = sorted(world.cluster.api.pods)
    world.cluster.workloads.apply(deployment(6))
    settle(world)
    assert sorted(world.cluster.api.pods) == known[6:], "400 s and 430 s count as one age"


def test_a_pod_on_its_way_out_is_replaced_at_once(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    world.cluster.apply(node("n"))
    world.cluster.workloads.apply(deployment(1))
    settle(world)
    (old,) = world.cluster.api.pods.values()
    world.cluster.api.delete_pod(old)
    world.clock.advance(world.clock.now)
    assert len(world.cluster.api.pods) == 2
    settle(world)
    (new,) = world.cluster.api.pods.values()
    assert new.uid != old.uid
    assert new.ready


def test_a_new_template_is_rolled_out_without_losing_availability(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    world.cluster.apply(node("n", cpus=16))
    world.cluster.workloads.apply(deployment(4))
    settle(world)
    old = set(world.cluster.api.pods)
    world.cluster.workloads.apply(deployment(4, cpu=600))
    least = 4
    for _ in range(200):
        world.clock.advance(world.clock.now + 100)
        least = min(least, sum(pod.ready and not pod.deleting for pod in world.cluster.api.pods.values()))
    assert least >= 3
    assert len(world.cluster.api.pods) == 4
    assert not old & set(world.cluster.api.pods)


def test_a_new_annotation_of_the_template_is_rolled_out(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    world.cluster.apply(node("n", cpus=16))
    before = deployment(2)
    world.cluster.workloads.apply(before)
    settle(world)
    template = replace(before.template, do_not_disrupt="true")
    world.cluster.workloads.apply(replace(before, template=template))
    settle(world)
    assert [pod.do_not_disrupt for pod in world.cluster.api.pods.values()] == ["true"] * 2


def test_a_deleted_deployment_takes_its_pods_along(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    world.cluster.apply(node("n"))
    world.cluster.workloads.apply(deployment(3))
    settle(world)
    found = world.cluster.workloads.find(Deployment, "default", "web")
    assert found is not None
    world.cluster.workloads.delete(found)
    settle(world)
    assert world.cluster.api.pods == {}


def test_a_stateful_set_goes_up_and_down_one_by_one(world: Simulation, shape: MakeShape, node: MakeNode) -> None:
    world.cluster.apply(node("n"))
    db = StatefulSet("uid-db", "default", "db", 3, PodTemplate(shape(app="db")))
    world.cluster.workloads.apply(db)
    world.clock.advance(world.clock.now + 2_000)
    assert [pod.name for pod in world.cluster.api.pods.values()] == ["db-0"]
    settle(world)
    assert [pod.name for pod in world.cluster.api.pods.values()] == ["db-0", "db-1", "db-2"]
    world.cluster.workloads.apply(replace(db, replicas=1))
    world.clock.advance(world.clock.now)
    assert [pod.name for pod in world.cluster.api.pods.values() if pod.deleting] == ["db-2"]
    settle(world)
    assert [pod.name for pod in world.cluster.api.pods.values()] == ["db-0"]


def test_a_stateful_pod_keeps_its_name_and_comes_back_only_when_it_is_gone(
    world: Simulation, shape: MakeShape, node: MakeNode
) -> None:
    world.cluster.apply(node("n"))
    world.cluster.workloads.apply(StatefulSet("uid-db", "default", "db", 1, PodTemplate(shape(app="db"))))
    settle(world)
    (old,) = world.cluster.api.pods.values()
    world.cluster.api.delete_pod(old)
    world.clock.advance(world.clock.now)
    assert len(world.cluster.api.pods) == 1
    settle(world)
    (new,) = world.cluster.api.pods.values()
    assert (new.name, new.ready) == ("db-0", True)
    assert new.uid != old.uid


def test_daemons_run_on_every_node_that_they_tolerate_and_select(
    world: Simulation, shape: MakeShape, node: MakeNode
) -> None:
    world.cluster.apply(node("a"))
    world.cluster.apply(node("b", taints=(Taint("k", "NoSchedule"),)))
    daemon_set(world, shape(app="agent"))
    settle(world)
    assert [pod.node for pod in world.cluster.api.pods.values()] == ["a"]
    world.cluster.apply(node("c"))
    settle(world)
    assert [pod.node for pod in world.cluster.api.pods.values()] == ["a", "c"]
    assert all(pod.owner is not None and pod.owner.kind == DAEMONSET for pod in world.cluster.api.pods.values())


def test_a_daemon_pod_takes_no_name_that_a_pod_of_the_beginning_has(
    world: Simulation, shape: MakeShape, node: MakeNode
) -> None:
    world.cluster.apply(node("a"))
    daemon_set(world, shape(app="agent"))
    settle(world)
    (first,) = world.cluster.api.pods.values()
    world.cluster.workloads._made = 0  # as in a model, which has made no pod yet
    world.cluster.apply(node("b"))
    settle(world)
    assert [pod.node for pod in world.cluster.api.pods.values()] == ["a", "b"]
    assert world.cluster.api.pods[first.uid].node == "a"


def test_a_daemon_pod_stays_through_no_schedule_and_leaves_for_no_execute(
    world: Simulation, shape: MakeShape, node: MakeNode
) -> None:
    world.cluster.apply(node("a"))
    daemon_set(world, shape(app="agent"))
    settle(world)
    world.cluster.apply(node("a", taints=(Taint("k", "NoSchedule"),)))
    settle(world)
    assert len(world.cluster.api.pods) == 1
    world.cluster.apply(node("a", taints=(Taint("k", "NoExecute"),)))
    settle(world)
    assert world.cluster.api.pods == {}


def test_a_daemon_pod_that_does_not_fit_waits_for_its_own_node(
    world: Simulation, shape: MakeShape, node: MakeNode
) -> None:
    world.cluster.apply(node("a", cpus=1))
    daemon_set(world, shape(cpu=1_500, app="agent"))
    world.cluster.apply(node("b"))
    settle(world)
    assert sorted(pod.node for pod in world.cluster.api.pods.values()) == ["", "b"]


def test_a_deleted_daemon_set_takes_its_pods_along(world: Simulation, shape: MakeShape, node: MakeNode) -> None:
    world.cluster.apply(node("a"))
    daemons = daemon_set(world, shape(app="agent"))
    settle(world)
    world.cluster.drain_observations()
    world.cluster.workloads.delete_daemon_set(daemons)
    settle(world)
    assert world.cluster.api.pods == {}
    gone = [o.payload.kind for o in world.cluster.drain_observations() if isinstance(o.payload, ObjectGone)]
    assert gone == ["daemonset", "pod"]


def test_every_observed_pod_brings_its_shape(world: Simulation, deployment: MakeDeployment) -> None:
    world.cluster.workloads.apply(deployment(2))
    settle(world)
    pods = [(o, o.payload) for o in world.cluster.drain_observations() if isinstance(o.payload, Pod)]
    assert len(pods) == 4  # each created, and each found unschedulable
    for observation, pod in pods:
        assert content(observation.blobs[pod.shape])[0] == pod.shape
