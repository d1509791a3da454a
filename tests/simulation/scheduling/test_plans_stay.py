"""Passes that come while nodes are on their way: plans stay, and a pass that is at its limit goes on at once."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import LaunchInstance, ProvisionResult
from kerf.replay.verify.verify import verify
from tests.support.simulation.manifests import MINUTE, deployment, pool_and_class
from tests.support.simulation.run import Run
from tests.support.world import Mi, World


def plans(store: Any) -> list[ProvisionResult]:
    found = [e.payload.result for e in store.scan() if e.type == "decision.made"]
    return [result for result in found if isinstance(result, ProvisionResult)]


def test_a_large_pod_does_not_take_the_room_of_a_node_that_was_launched_for_others() -> None:
    """Six small pods wait for a node when a large one comes. In the order of size it would be put on that node, and a
    second, smaller one be launched for the small pods that it displaces. But kube-scheduler binds the small pods to
    their node, and the large one, too large for the second, would need a third."""
    later = {"at": "20s", "action": "apply", "object": deployment("large", 1, "3500Mi")}
    timeline = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "t"},
                "spec": {"actions": [later]}}  # fmt: skip
    run = Run([*pool_and_class(), deployment("small", 6, "1Gi"), timeline], until=5 * MINUTE)
    assert [len(plan.claims) for plan in plans(run.store) if plan.claims] == [1, 1]
    assert all(pod.node for pod in run.runtime.state.facts.pods.values())
    assert verify(run.memory).exit_code == 0


def test_s60_a_pass_at_its_limit_launches_and_goes_on_with_the_rest_at_once() -> None:
    world = World(max_steps=2)
    world.prepare()
    world.pending("a", "b", "c", "d", "e", memory=10_000 * Mi)
    assert len(world.after(1_000)) == 2
    assert len(world.after(1)) == 2
    assert len([intent for intent in world.after(1) if isinstance(intent, LaunchInstance)]) == 1
    assert [len(plan.truncated) for plan in plans(world.store)] == [3, 1, 0]
    assert world.runtime.state.facts.rest_at == 0
    assert sorted(world.runtime.state.facts.targets) == [f"uid-{name}" for name in "abcde"]
    assert verify(world.store).exit_code == 0


def test_pods_that_can_never_be_placed_do_not_keep_the_others_from_their_turn() -> None:
    world = World(max_steps=1)
    world.prepare()
    world.pending("x", "y", "z", memory=90_000 * Mi)
    world.pending("a", "b", memory=1_000 * Mi)
    world.after(1_000)
    for _ in range(4):
        world.after(1)
    assert [len(plan.truncated) for plan in plans(world.store)] == [4, 3, 2, 1, 0]
    assert sorted(world.runtime.state.facts.targets) == ["uid-a", "uid-b"]
    assert world.runtime.state.facts.unplaced
    world.pending("c", memory=1_000 * Mi)
    world.after(1_000)  # the next window is about all of them again
    assert {uid for uid in plans(world.store)[-1].truncated if uid in ("uid-x", "uid-y", "uid-z")}
    assert verify(world.store).exit_code == 0


def test_a_pod_that_arrives_meanwhile_waits_for_its_own_window() -> None:
    world = World(max_steps=1)
    world.prepare()
    world.pending("a", "b", memory=10_000 * Mi)
    world.after(1_000)
    world.pending("c", memory=10_000 * Mi)
    world.after(1)
    assert sorted(world.runtime.state.facts.targets) == ["uid-a", "uid-b"]
    world.after(1_000)
    assert sorted(world.runtime.state.facts.targets) == ["uid-a", "uid-b", "uid-c"]
    assert verify(world.store).exit_code == 0


def test_the_limit_is_far_from_any_real_pass() -> None:
    assert Settings().max_steps >= 5 * 100_000
