"""The virtual scheduler and pods that are told their nodes (status.nominatedNodeName), as kube-scheduler goes by it."""

from __future__ import annotations

import pytest

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.faults import FaultPlan
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import AffinityTerm, HostPort, PodShape, Selector
from tests.support.simulation.pods import Make, MakeNode, places, put, settle


def promised(world: Simulation, name: str, shape: PodShape, node: str) -> None:
    put(world, name, shape)
    world.cluster.nominate(world.cluster.api.pods[name], node)


@pytest.mark.parametrize(("priority", "bound"), [(0, ""), (-1, ""), (1, "n")])
def test_what_a_node_is_promised_takes_room_from_pods_of_no_higher_priority(
    world: Simulation, shape: Make, node: MakeNode, priority: int, bound: str
) -> None:
    world.cluster.apply(node("n"))
    put(world, "first", shape(cpu=3_500))
    settle(world)
    promised(world, "large", shape(cpu=3_000), "n")
    put(world, "small", shape(cpu=500, app="small", priority=priority))
    settle(world)
    assert places(world) == {"first": "n", "large": "", "small": "n" if bound else ""}
    world.cluster.nominate(world.cluster.api.pods["large"], "")
    settle(world)
    assert places(world)["small"] == "n", "it was taken back"


def test_a_pod_goes_where_it_was_told_and_elsewhere_only_if_it_cannot(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    world.cluster.apply(node("a-empty"))
    world.cluster.apply(node("full", cpus=0))
    world.cluster.apply(node("used", labels={"disk": "ssd"}))
    put(world, "there", shape(cpu=100, node_selector={"disk": "ssd"}))
    settle(world)
    promised(world, "told", shape(), "used")
    promised(world, "cannot", shape(cpu=200), "full")
    settle(world)
    assert places(world)["told"] == "used"
    assert places(world)["cannot"] not in ("", "full")
    assert {pod.nominated for pod in world.cluster.api.pods.values()} == {""}, "binding ends it"


def test_a_node_that_comes_is_kept_for_those_who_were_told_its_name(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    """The second in line, and two of them equal: the name makes the difference."""
    for name in ("p0", "p1", "p2"):
        put(world, name, shape(cpu=3_000))
    settle(world)
    world.cluster.nominate(world.cluster.api.pods["p1"], "n")
    world.cluster.apply(node("n"))
    settle(world)
    assert places(world) == {"p0": "", "p1": "n", "p2": ""}


def test_promised_host_ports_are_taken(world: Simulation, shape: Make, node: MakeNode) -> None:
    world.cluster.apply(node("n"))
    port = (HostPort(8080),)
    promised(world, "told", shape(host_ports=port, node_selector={"not": "yet"}), "n")
    put(world, "other", shape(host_ports=port))
    put(world, "portless", shape())
    settle(world)
    assert places(world) == {"told": "", "other": "", "portless": "n"}


def test_promised_pods_count_for_what_must_be_apart(world: Simulation, shape: Make, node: MakeNode) -> None:
    world.cluster.apply(node("n", labels={"host": "n"}))
    apart = (AffinityTerm("host", selector=Selector(labels={"app": "db"})),)
    promised(world, "told", shape(app="db", node_selector={"not": "yet"}), "n")
    put(world, "db", shape(app="db", anti_affinity=apart))
    put(world, "web", shape())
    settle(world)
    assert places(world) == {"told": "", "db": "", "web": "n"}
    world.cluster.nominate(world.cluster.api.pods["told"], "")
    settle(world)
    assert places(world)["db"] == "n", "and only as long as they are promised"


def test_a_nomination_that_is_refused_is_left(catalogue: Catalogue, shape: Make) -> None:
    world = Simulation(catalogue, clock=Clock(START), faults=FaultPlan(write_refused=1.0))
    promised(world, "p", shape(), "n")
    assert world.cluster.api.pods["p"].nominated == ""


def test_a_nomination_for_a_node_that_is_gone_is_cleared(world: Simulation, shape: Make, node: MakeNode) -> None:
    """Found by a simulation seed: a controller that had lost its record took the pod to have its place for ever."""
    world.cluster.apply(node("n"))
    promised(world, "p", shape(node_selector={"not": "yet"}), "n")
    promised(world, "early", shape(node_selector={"not": "yet"}), "on-its-way")
    settle(world)
    assert world.cluster.api.pods["p"].nominated == "n"
    world.cluster.api.remove(world.cluster.api.nodes["n"])
    settle(world)
    assert {uid: pod.nominated for uid, pod in world.cluster.api.pods.items()} == {"p": "", "early": "on-its-way"}
