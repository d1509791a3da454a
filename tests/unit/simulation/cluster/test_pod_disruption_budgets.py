"""PodDisruptionBudgets and evictions, as Kubernetes answers them (D-13, D-150, L-206)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kerf.adapters.simulation.cluster.controllers.workloads import Deployment
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Selector
from kerf.engine.record.decisions import DeletePod, EvictPod
from kerf.engine.record.observations import EffectAnswered

MakeDeployment = Callable[..., Deployment]
MakeNode = Callable[..., Node]


def budget(name: str = "web", **more: str | bool) -> PodDisruptionBudget:
    return PodDisruptionBudget(f"uid-{name}", "default", name, Selector(labels={"app": "web"}), **more)  # type: ignore[arg-type]


def running(world: Simulation, deployment: Deployment, node: Node) -> list[Pod]:
    world.cluster.apply(node)
    world.cluster.workloads.apply(deployment)
    world.clock.advance(world.clock.now + 10_000)
    return list(world.cluster.api.pods.values())


def allowed(world: Simulation) -> int:
    world.clock.advance(world.clock.now)
    return world.cluster.api.budgets["uid-web"].disruptions_allowed


def evict(world: Simulation, pod: Pod, uid: str = "") -> EffectAnswered:
    order = EvictPod("claim", pod.node, uid or pod.uid, pod.namespace, pod.name)
    return world.cluster.evict(order, intent="1.0")


@pytest.mark.parametrize(
    ("bound", "expected", "desired"),
    [
        ({"max_unavailable": "1"}, 1, 3),
        ({"max_unavailable": "50%"}, 2, 2),
        ({"max_unavailable": "0"}, 0, 4),
        ({"max_unavailable": "10%"}, 1, 3),  # a part of a pod is rounded up
        ({"min_available": "3"}, 1, 3),
        ({"min_available": "50%"}, 2, 2),
        ({"min_available": "90%"}, 0, 4),
        ({"min_available": "9"}, 0, 9),
    ],
)
def test_disruptions_allowed_of_four_ready_pods(
    world: Simulation, deployment: MakeDeployment, node: MakeNode, bound: dict[str, str], expected: int, desired: int
) -> None:
    running(world, deployment(4), node("n"))
    world.cluster.apply(budget(**bound))
    assert allowed(world) == expected
    known = world.cluster.api.budgets["uid-web"]
    assert (known.expected_pods, known.desired_healthy) == (4, desired)


def test_an_eviction_spends_a_disruption_and_the_next_is_refused_until_the_replacement_is_ready(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    world.cluster.apply(budget(max_unavailable="1"))
    first, second = running(world, deployment(2), node("n"))
    assert allowed(world) == 1
    assert (evict(world, first).ok, evict(world, first).code) == (True, "200")
    refused = evict(world, second)
    assert (refused.ok, refused.code) == (False, "429")
    assert "disruption budget" in refused.message
    assert allowed(world) == 0
    world.clock.advance(world.clock.now + 10_000)
    assert allowed(world) == 1
    assert evict(world, second).ok


def test_an_eviction_is_for_this_very_pod(world: Simulation, deployment: MakeDeployment, node: MakeNode) -> None:
    (pod,) = running(world, deployment(1), node("n"))
    assert evict(world, pod, uid="another").code == "409"
    world.cluster.api.delete_pod(pod, 0)
    assert evict(world, pod).code == "404"


def test_a_pod_under_two_budgets_cannot_be_evicted(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    """D-150: the API server's 500 is recognised by its text."""
    (pod,) = running(world, deployment(1), node("n"))
    world.cluster.apply(budget(max_unavailable="100%"))
    world.cluster.apply(budget("second", max_unavailable="100%"))
    answer = evict(world, pod)
    assert answer.code == "500"
    assert "more than one PodDisruptionBudget" in answer.message


@pytest.mark.parametrize(("always", "expected"), [(True, "200"), (False, "429")])
def test_an_unhealthy_pod_may_go_by_policy(
    world: Simulation, deployment: MakeDeployment, node: MakeNode, always: bool, expected: str
) -> None:
    """D-13: IfHealthyBudget lets an unready pod go only while enough others are healthy."""
    world.cluster.apply(budget(min_available="2", always_allow_unhealthy=always))
    first, _ = running(world, deployment(2), node("n"))
    world.cluster.apply(unready := Pod(**{f: getattr(first, f) for f in first.__struct_fields__} | {"ready": False}))
    assert allowed(world) == 0
    assert evict(world, unready).code == expected


def test_a_pending_pod_is_evicted_past_its_budget(world: Simulation, deployment: MakeDeployment) -> None:
    world.cluster.apply(budget(max_unavailable="0"))
    world.cluster.workloads.apply(deployment(1))
    world.clock.advance(world.clock.now + 1_000)
    (pod,) = world.cluster.api.pods.values()
    assert evict(world, pod).ok
    assert pod.uid not in world.cluster.api.pods


def test_bare_pods_under_max_unavailable_allow_nothing(world: Simulation, node: MakeNode) -> None:
    """Without a controller there is no scale to take a share of."""
    world.cluster.apply(node("n"))
    digest = world.cluster.api.keep_shape(PodShape(labels={"app": "web"}))
    world.cluster.apply(Pod("u", "default", "p", digest, node="n", phase="Running", ready=True))
    world.cluster.apply(budget(max_unavailable="1"))
    assert allowed(world) == 0


def test_forced_deletion_ignores_budgets_and_keeps_its_precondition(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    """Forced deletion ignores budgets and keeps its precondition (D-152)."""
    world.cluster.apply(budget(max_unavailable="0"))
    (pod,) = running(world, deployment(1), node("n"))
    order = DeletePod("claim", "n", "another", pod.namespace, pod.name, 5)
    assert world.cluster.delete_pod(order, intent="1.0").code == "409"
    order = DeletePod("claim", "n", pod.uid, pod.namespace, pod.name, 5)
    assert world.cluster.delete_pod(order, intent="1.0").ok
    assert world.cluster.api.pods[pod.uid].deleting == world.clock.now + 5_000
    world.clock.advance(world.clock.now + 1_000)
    assert world.cluster.delete_pod(order, intent="1.0").code == "404"


def test_a_budget_that_does_not_change_is_not_observed_again(
    world: Simulation, deployment: MakeDeployment, node: MakeNode
) -> None:
    world.cluster.apply(budget(max_unavailable="1"))
    running(world, deployment(2), node("n"))
    world.cluster.drain_observations()
    world.cluster.apply(node("n", labels={"x": "y"}))
    world.clock.advance(world.clock.now + 1_000)
    kinds = [type(o.payload) for o in world.cluster.drain_observations()]
    assert kinds == [Node]
