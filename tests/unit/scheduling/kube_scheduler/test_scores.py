"""Scores on resources, as a real kube-scheduler was seen to compute them (benchmarks/binding.py)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import Owner, Resources, Selector, SpreadConstraint
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, existing_node, planned_node
from kerf.engine.scheduling.kube_scheduler.node_usage import NodeUsage, PodLoad
from kerf.engine.scheduling.kube_scheduler.scores import scored_requests
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.plan_scenarios import problem_of as problem_of_scenario
from tests.support.lives import in_service
from tests.support.scenarios.kube_scheduler import bind, counts_on
from tests.support.scenarios.problems import GI, Workloads, ladder, problem, shape

WANTED = {"cpu": 500, "memory": GI}
LOAD = PodLoad(WANTED, scored_requests(WANTED), newer=True)


def node(name: str, cpu: int = 4000, zone: str = "z1", **fields: Resources) -> NodeInput:
    labels = {lbl.ZONE: zone, "name": name}
    return replace(NodeInput(name, "", labels, (), {"cpu": cpu, "memory": 8 * GI, "pods": 10}), **fields)


def score(given: NodeInput, asked: Problem) -> int:
    expected = daemons(asked.daemons, asked.shapes)
    return scored(existing_node(given, expected, asked))


def scored(seat: NodeInfo) -> int:
    return NodeUsage(seat, {}).score(LOAD)


def test_pods_that_request_no_memory_count_as_if_they_did() -> None:
    asked = problem(Workloads().add("web", 1, shape(500)), ladder(2))
    bare, laden = node("bare"), node("laden", assumed={"memory": 2 * GI})
    assert score(bare, asked) - score(laden, asked) == 13  # memory is half of it, and a quarter of that is taken


def test_what_bound_pods_count_as_is_known_of_a_cluster() -> None:
    """Five pods that request memory alone: each counts as 100m CPU. Those of DaemonSets are known by their sets."""
    world = in_service()
    (there,) = problem_of(world.runtime.state, world.now).nodes
    assert there.assumed == {"cpu": 500}
    assert there.total["memory"] - there.available["memory"] == 5 * 1024 * 2**20
    world.see(Observation(replace(world.pods["a"], node="n1", owner=Owner("apps/v1/DaemonSet", "d"))))
    (there,) = problem_of(world.runtime.state, world.now).nodes
    assert there.assumed == {"cpu": 400}


def test_what_bound_pods_count_as_is_known_of_a_scenario() -> None:
    pod = {"metadata": {"name": "b"}, "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    amounts = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    there = {"metadata": {"name": "n"}, "spec": {}, "status": amounts}
    (found,) = problem_of_scenario({"nodes": [{"node": there, "pods": [pod]}]}, Catalogues({})).nodes
    assert (found.assumed, found.total) == ({"memory": 200 * 2**20}, {"cpu": 4000, "memory": 8 * GI})


def test_pods_of_daemon_sets_count_on_existing_and_planned_nodes() -> None:
    work = Workloads().add("web", 1, shape(500))
    found = []
    for given in ([], [shape(0)]):
        asked = problem(work, ladder(4), daemons=given)
        seat = planned_node("new", plan(asked).claims[0], daemons(asked.daemons, asked.shapes), asked)
        found.append((score(node("old"), asked), scored(seat)))
    (old, new), (old_with, new_with) = found
    assert old > old_with
    assert new > new_with


def test_a_node_whose_type_nobody_knows_is_as_large_as_it_says() -> None:
    asked = problem(Workloads().add("web", 1, shape(500)), ladder(2))
    half = node("half", cpu=4000, total={"cpu": 8000, "memory": 16 * GI})
    empty = node("empty", cpu=4000, total={"cpu": 4000, "memory": 8 * GI})
    assert score(half, asked) < score(empty, asked)


def test_scores_are_whole_numbers() -> None:
    """Of three pods two are in a: that zone gets a third of 100, which is 33, twice."""
    soft = SpreadConstraint(lbl.ZONE, 1, "ScheduleAnyway", selector=Selector({"app": "x"}))
    counts, asked = counts_on(Workloads().add("x", 4, shape(labels={"app": "x"}, spread=(soft,))))
    for number in (0, 1, 2):
        bind(counts, asked, number, number)
    pod = asked.pods[3]
    assert counts.scores((pod.namespace, pod.shape), [0, 1, 2]) == [66, 66, 200]
