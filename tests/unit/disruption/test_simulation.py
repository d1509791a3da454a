"""Where the pods of a node that goes may go in a simulation (S-60, S-78, D-93)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode, what_if
from kerf.engine.disruption.prepared_simulation import PreparedSimulations
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, Selector, SpreadConstraint
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.problem.departing_pods import MIN_LEAD
from tests.support.scenarios.clusters import NOW, ON_DEMAND, cluster, node, pending, pod, pool

QUIET = pool(consolidate_after=60_000)
BUSY: dict[str, Any] = {"last_pod_event": NOW - 59_999, "initialized_since": NOW - 3_600_000}


def goes(moving: Pod, pools: tuple[Any, ...] = (QUIET,), *, consolidating: bool = True, **busy: Any) -> str:
    """Where the pod of n1 goes when that goes and n2 has room: the node, or "new"."""
    given = cluster(node("n1", "large", moving), node("n2", "large", **{**BUSY, **busy}), pools=pools)
    outcome = Simulator(given).without(["n1"], consolidating=consolidating)
    assert outcome.failure is None
    return "new" if outcome.claims else outcome.placements[0].node


def test_s78_a_node_whose_pods_have_just_changed_takes_none_that_runs_elsewhere() -> None:
    assert goes(pod("a")) == "new"
    assert goes(pod("a"), last_pod_event=NOW - 60_000) == "n2"
    assert goes(pod("a"), last_pod_event=0) == "n2", "without a pod event its initialization counts"
    assert goes(pod("a"), last_pod_event=0, initialized_since=NOW - 1_000) == "new"


def test_s78_only_where_consolidation_asks() -> None:
    """Drift, which has to replace its nodes anyhow, may use any."""
    assert goes(pod("a"), consolidating=False) == "n2"


@pytest.mark.parametrize("after", [0, None])
def test_s78_only_in_nodepools_that_wait(after: int | None) -> None:
    assert goes(pod("a"), (pool(consolidate_after=after),)) == "n2"


def test_s78_only_managed_nodes_that_are_initialized() -> None:
    starting = node("n2", "large", initialized=False, **BUSY)
    (place,) = what_if(cluster(starting, pools=(QUIET,)), frozenset(), respect_settling=True).nodes
    assert place.taints == (), "that a simulation counts on no such node is another rule (D-95)"
    unmanaged = node("n2", "large", pool="", **BUSY)
    unmanaged = replace(unmanaged, place=replace(unmanaged.place, claim=""))
    given = cluster(node("n1", "large", pod("a")), unmanaged, pools=(QUIET,))
    assert [placement.node for placement in Simulator(given).without(["n1"]).placements] == ["n2"]


def places(given: Cluster, *leaving: str) -> dict[str, str]:
    outcome = Simulator(given).without(leaving)
    assert outcome.failure is None
    return {uid: placement.node for placement in outcome.placements for uid in placement.pods}


def busy_beside(*nodes: ClusterNode, **changes: Any) -> Cluster:
    return cluster(node("n2", "large", **BUSY), *nodes, pools=(QUIET,), **changes)


def test_s78_pods_that_are_pending_or_leave_a_marked_node_may_go_there() -> None:
    given = busy_beside(node("n1", "large"), pending=(pending("w"),))
    assert places(given, "n1") == {"uid-w": "n2"}
    given = busy_beside(node("n1", "large"), node("n3", "large", pod("a"), marked=True))
    assert places(given, "n1") == {"uid-a": "n2"}


def test_s78_so_may_a_pod_that_is_bound_and_does_not_run_yet() -> None:
    starting = pod("a", phase="Pending", ready=False)
    assert goes(starting) == "n2"
    given = busy_beside(node("n1", "large", starting))
    assert PreparedSimulations(given, consolidating=True).plan(frozenset(["n1"]), 5) is None, (
        "it is asked from the beginning"
    )


def test_s60_the_limit_of_a_provisioning_pass_is_none_for_a_simulation() -> None:
    nodes = [node("n1", "large", *(pod(f"a{i}") for i in range(5))), node("n2", "large")]
    given = cluster(*nodes)
    given = replace(given, base=replace(given.base, settings=Settings(max_steps=1)))
    outcome = Simulator(given).without(["n1"])
    assert outcome.failure is None
    assert len(outcome.placements[0].pods) == 5


def test_s126_an_open_label_is_known_by_nodes_that_stay() -> None:
    """A prepared simulation knew the domain of the node that goes as one that may be launched, so it opened a claim."""

    def spread(name: str) -> Pod:
        return pod(name, 500, labels={"app": "x"}, spread=(SpreadConstraint("k", selector=Selector({"app": "x"})),))

    open_label = pool(requirements=(ON_DEMAND, RequirementSpec("k", "Exists", ())))
    nodes = [node(name, "large", spread(f"of-{name}"), labels={"k": name}) for name in "ab"]
    given = replace(cluster(*nodes, pools=(open_label,)), live=True)
    for prepared in (True, False):
        found = Simulator(given, prepared=prepared).without(frozenset("b"))
        assert (found.failure, found.claims) == (None, ())
        assert [(placed.node, placed.pods) for placed in found.placements] == [("a", ("uid-of-b",))]


@pytest.mark.parametrize(
    ("live", "grace", "healthy", "moves"),
    [
        pytest.param(True, MIN_LEAD + 1, 2, False, id="it leaves at the deadline"),
        pytest.param(True, MIN_LEAD, 2, True, id="that is soon"),
        pytest.param(True, MIN_LEAD + 1, 1, True, id="the budget lets one go at a time"),
        pytest.param(False, MIN_LEAD + 1, 2, True, id="as Karpenter"),
    ],
)
def test_s49_d88_a_pod_whose_budget_asks_for_every_one_needs_a_place_only_near_the_deadline(
    live: bool, grace: int, healthy: int, moves: bool
) -> None:
    every = PodDisruptionBudget("u", "default", "every", Selector(), expected_pods=2, desired_healthy=healthy)
    given = cluster(node("n1", "large", pod("a"), grace_period=grace), pod_disruption_budgets=(every,), live=live)
    assert [moving.uid for moving in given.moving(given.nodes[0])] == ["uid-a"] * moves
