"""The virtual scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from kerf.adapters.simulation.cluster.controllers.workloads import Deployment
from kerf.adapters.simulation.scheduler.scheduler import NodeCheck
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    HostPort,
    NodeTerm,
    Pod,
    PodShape,
    PreferredNodeTerm,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
)
from tests.support.simulation.pods import Make, MakeNode, places, put, settle


def test_a_pod_that_fits_nowhere_is_marked_unschedulable_and_bound_when_a_node_comes(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    """S-40: only the mark makes a pod provisionable."""
    put(world, "p", shape())
    settle(world)
    assert world.cluster.api.pods["p"].unschedulable
    world.cluster.apply(node("n"))
    settle(world)
    assert world.cluster.api.pods["p"].node == "n"
    assert not world.cluster.api.pods["p"].unschedulable


def test_the_least_allocated_node_is_taken_then_the_first_by_name(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    for name in ("n3", "n1", "n2"):
        world.cluster.apply(node(name))
    for index in range(4):
        put(world, f"p{index}", shape())
    settle(world)
    assert places(world) == {"p0": "n1", "p1": "n2", "p2": "n3", "p3": "n1"}


def test_no_node_is_ever_overfilled_and_freed_room_is_used_again(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    world.cluster.apply(node("n", cpus=2))
    for index in range(5):
        put(world, f"p{index}", shape(cpu=700))
    settle(world)
    assert [p for p, n in places(world).items() if n] == ["p0", "p1"]
    assert world.cluster.scheduler.occupancy("n").used["cpu"] == 1400
    world.cluster.api.delete_pod(world.cluster.api.pods["p0"], 0)
    settle(world)
    assert places(world) == {"p1": "n", "p2": "n", "p3": "", "p4": ""}


def test_higher_priority_goes_first(world: Simulation, shape: Make, node: MakeNode) -> None:
    put(world, "a-low", shape(cpu=3_000))
    put(world, "b-high", shape(cpu=3_000, priority=10))
    world.cluster.apply(node("n"))
    settle(world)
    assert places(world) == {"a-low": "", "b-high": "n"}


def test_taints_keep_pods_off_and_preferences_only_steer(world: Simulation, shape: Make, node: MakeNode) -> None:
    world.cluster.apply(node("a", taints=(Taint("k", "NoSchedule"),)))
    world.cluster.apply(node("b", taints=(Taint("k", "PreferNoSchedule"),)))
    world.cluster.apply(node("c", labels={"disk": "ssd"}))
    world.cluster.apply(node("d"))
    likes_ssd = PreferredNodeTerm(10, NodeTerm(expressions=(Expression("disk", "Exists"),)))
    put(world, "0-tolerant", shape(tolerations=(Toleration(key="k", operator="Exists"),)))
    put(world, "1-picky", shape(preferred_terms=(likes_ssd,)))
    put(world, "2-large", shape(cpu=3_900))
    put(world, "3-plain", shape(cpu=3_800))
    settle(world)
    assert places(world)["0-tolerant"] == "a"
    assert places(world)["1-picky"] == "c"
    assert places(world)["2-large"] == "d"
    assert places(world)["3-plain"] == "b"


def test_two_pods_with_one_host_port_need_two_nodes(world: Simulation, shape: Make, node: MakeNode) -> None:
    """Two pods with one host port need two nodes (S-97)."""
    world.cluster.apply(node("n1"))
    for name in ("p1", "p2"):
        put(world, name, shape(host_ports=(HostPort(8080),)))
    settle(world)
    assert places(world) == {"p1": "n1", "p2": ""}
    world.cluster.apply(node("n2"))
    settle(world)
    assert places(world) == {"p1": "n1", "p2": "n2"}


def test_spread_keeps_the_skew(world: Simulation, shape: Make, node: MakeNode) -> None:
    """DoNotSchedule with maxSkew 1 over two zones, the second of which has room for one pod only."""
    world.cluster.apply(node("a", cpus=8, labels={"zone": "a"}))
    world.cluster.apply(node("b", cpus=1, labels={"zone": "b"}))
    spread = SpreadConstraint("zone", selector=Selector(labels={"app": "web"}))
    for index in range(4):
        put(world, f"p{index}", shape(cpu=900, spread=(spread,)))
    settle(world)
    assert sorted(places(world).values()) == ["", "a", "a", "b"]


def test_anti_affinity_works_in_both_directions(world: Simulation, shape: Make, node: MakeNode) -> None:
    world.cluster.apply(node("a", labels={"zone": "a"}))
    term = AffinityTerm("zone", selector=Selector(labels={"app": "web"}))
    put(world, "loner", shape(app="loner", anti_affinity=(term,)))
    settle(world)
    put(world, "web", shape(app="web"))
    settle(world)
    assert places(world) == {"loner": "a", "web": ""}


def test_affinity_follows_the_pod_that_it_names_and_may_name_itself(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    for zone in ("a", "b"):
        world.cluster.apply(node(zone, labels={"zone": zone}))
    to_db = AffinityTerm("zone", selector=Selector(labels={"app": "db"}))
    put(world, "web", shape(affinity=(to_db,)))
    settle(world)
    assert places(world) == {"web": ""}
    put(world, "db-0", shape(app="db", affinity=(to_db,), node_selector={"zone": "b"}))
    settle(world)
    assert places(world) == {"web": "b", "db-0": "b"}


@pytest.mark.parametrize("count", [300])
def test_equal_pods_without_a_place_are_judged_once(
    world: Simulation, deployment: Callable[..., Deployment], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    find = world.cluster.scheduler._find

    def counted(pod: Pod) -> str | None:
        nonlocal asked
        asked += 1
        return find(pod)

    monkeypatch.setattr(world.cluster.scheduler, "_find", counted)
    world.cluster.workloads.apply(deployment(count))
    settle(world)
    assert sum(pod.unschedulable for pod in world.cluster.api.pods.values()) == count
    assert asked == 1


def test_a_refused_pod_asks_only_nodes_that_got_room(
    world: Simulation, shape: Make, node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    best = world.cluster.scheduler._best

    def noted(pod: Pod, pod_shape: PodShape, candidates: Iterable[str], possible: NodeCheck) -> str | None:
        asked.append(list(candidates))
        return best(pod, pod_shape, candidates, possible)

    monkeypatch.setattr(world.cluster.scheduler, "_best", noted)
    for name in ("n1", "n2", "n3"):
        world.cluster.apply(node(name, cpus=4, taints=(Taint("off", "NoSchedule"),)))
    put(world, "p", shape())
    settle(world)
    assert asked == [["n1", "n2", "n3"]]
    world.cluster.apply(node("n4", cpus=4, taints=(Taint("off", "NoSchedule"),)))
    settle(world)
    assert asked[1:] == [["n4"]]
    world.cluster.apply(node("n2", cpus=4))
    settle(world)
    assert asked[2:] == [["n2"]]
    assert places(world) == {"p": "n2"}
