"""Workloads that are known by their pods alone."""

from __future__ import annotations

from collections.abc import Callable

from kerf.adapters.simulation.cluster.controllers.recorded_pods import ReplicaGroup, Slot
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import STATEFULSET, Owner, Pod, PodShape

MakeNode = Callable[..., Node]
MINUTE = 60_000


def settle(world: Simulation, time: int = 10_000) -> None:
    world.clock.advance(world.clock.now + time)


def pod(world: Simulation, name: str, kind: str = "apps/v1/ReplicaSet") -> Pod:
    digest = world.cluster.api.keep_shape(PodShape(requests={"cpu": 100}, grace=0))
    return Pod(f"uid-{name}", "default", name, digest, owner=Owner(kind, "owner", "uid-owner"))


def slot(given: Pod, **more: object) -> Slot:
    known = {"runs": 0, "phase": "", "kept": 0, "again": True, "named": False, **more}
    return Slot(pod=given, uid=given.uid, **known)  # type: ignore[arg-type]


def names(world: Simulation) -> list[str]:
    return sorted(known.name for known in world.cluster.api.pods.values())


def test_replicas_have_the_recorded_names_first_and_come_again_under_others(world: Simulation, node: MakeNode) -> None:
    recorded = world.cluster.workloads.recorded
    world.cluster.apply(node("n"))
    recorded.add_group("g", ReplicaGroup("uid-owner", "owner", (pod(world, "web-a"), pod(world, "web-b"))))
    recorded.scale("g", 2)
    settle(world)
    assert names(world) == ["web-a", "web-b"]
    assert recorded.replicas_of("uid-owner") == 2

    world.cluster.api.delete_pod(world.cluster.api.pods["uid-web-a"])
    settle(world)
    assert len(names(world)) == 2
    assert "web-a" not in names(world)

    recorded.scale("g", 0)
    settle(world)
    assert not names(world)


def test_a_pod_that_ends_by_itself_runs_so_long_from_when_it_starts(world: Simulation, node: MakeNode) -> None:
    recorded = world.cluster.workloads.recorded
    recorded.come("s", slot(pod(world, "job", "batch/v1/Job"), runs=5 * MINUTE, phase="Succeeded", kept=MINUTE))
    settle(world, 20 * MINUTE)
    assert world.cluster.api.pods["uid-job"].phase == "Pending"

    world.cluster.apply(node("n"))
    settle(world, 4 * MINUTE)
    assert world.cluster.api.pods["uid-job"].phase == "Running"
    settle(world, 90_000)
    assert world.cluster.api.pods["uid-job"].phase == "Succeeded"
    settle(world, 2 * MINUTE)
    assert not names(world)


def test_a_stateful_sets_pod_comes_again_under_its_name_and_leaves_for_good(world: Simulation, node: MakeNode) -> None:
    recorded = world.cluster.workloads.recorded
    world.cluster.apply(node("n"))
    recorded.come("s", slot(pod(world, "db-0", STATEFULSET), named=True))
    settle(world)

    world.cluster.api.delete_pod(world.cluster.api.pods["uid-db-0"])
    settle(world)
    assert names(world) == ["db-0"]
    assert "uid-db-0" not in world.cluster.api.pods

    recorded.leave("s")
    settle(world)
    assert not names(world)


def test_a_pod_without_an_owner_does_not_come_again(world: Simulation, node: MakeNode) -> None:
    recorded = world.cluster.workloads.recorded
    world.cluster.apply(node("n"))
    recorded.come("s", slot(pod(world, "bare"), again=False))
    settle(world)

    world.cluster.api.delete_pod(world.cluster.api.pods["uid-bare"])
    settle(world)
    assert not names(world)
