"""What is told of nodes that stay: budgets that allow nothing, and drifted nodes without a destination (D-52, D-64;
EV-1, EV-2)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, ProposedMovesResult, Verdict
from kerf.engine.record.observations import Observation
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import KubernetesEvent
from tests.support.events import told
from tests.support.lives import PODS, claim_of, half_empty
from tests.support.world import World, pool
from tests.support.worlds.two_nodes import two_nodes

NONE = "No allowed disruptions for disruption reason {} due to blocking budget"


def of(world: World, reason: str, since: int = 0) -> list[KubernetesEvent]:
    return [event for event in told(world, since) if event.reason == reason]


def blocked_pools(world: World) -> set[str]:
    world.after(11_000)
    return {event.message for event in of(world, "DisruptionBlocked") if event.about.kind == "NodePool"}


def test_ev2_d52_the_budgets_event_names_the_reason_for_which_nodes_would_go() -> None:
    assert blocked_pools(half_empty(budgets=(Budget("0"),))) == {NONE.format("Underutilized")}
    empty = half_empty(budgets=(Budget("0"),))
    for name in PODS[3:]:
        empty.gone(name)
    assert blocked_pools(empty) == {NONE.format("Empty")}


def test_ev2_l22_the_event_says_that_a_budget_cannot_be_read() -> None:
    """Its NodePool is ready, and nothing else on the cluster says why no node goes."""
    (said,) = blocked_pools(half_empty(budgets=(Budget("1", schedule="99 99 * * *", duration=3_600_000),)))
    unreadable = ": budget 0 of NodePool default cannot be read (KERF314), so that nothing may go: '99 99 * * *' is no"
    assert said.startswith(NONE.format("Underutilized") + unreadable)


def test_ev2_d52_a_budget_that_is_used_up_is_no_blocking_budget() -> None:
    """The budget allows one node; that another one uses it up is no fault of the budget."""
    world = two_nodes()
    world.see(Observation(pool(budgets=(Budget("1"),))))
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    kept = tuple(
        Verdict(name, "consolidation", "keep", Reason("budget", {"nodepool": "default"}))
        for name in world.runtime.state.facts.claims
    )
    decision = Decision("moves", 1, 1, 1, "", ProposedMovesResult(verdicts=kept))
    assert events.apply(replace(last, payload=decision)) == []
    world.see(Observation(pool(budgets=(Budget("0"),))))
    (event,) = events.apply(replace(last, payload=decision))
    assert event.message == NONE.format("Underutilized")


def drifted(**changes: Any) -> World:
    """The NodePool no longer allows the node's instance type."""
    world = half_empty(budgets=(Budget("100%"),), consolidation_policy="WhenEmpty")
    made = pool(budgets=(Budget("100%"),), consolidation_policy="WhenEmpty", **changes)
    only = RequirementSpec(lbl.INSTANCE_TYPE, "In", ("c5.large",))
    world.see(Observation(replace(made, requirements=(*made.requirements, only))))
    assert claim_of(world).drift is not None
    return world


def test_ev1_d64_a_drifted_node_whose_pods_have_no_place_is_blocked() -> None:
    """What only keeps other nodes from consolidation keeps a drifted one from any disruption."""
    world = drifted()
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    why = Reason("no-place", {"count": 1, "pods": ["default/d"]})
    result = ProposedMovesResult(verdicts=(Verdict(claim_of(world).name, "consolidation", "keep", why),))
    found = events.apply(replace(last, payload=Decision("moves", 1, 1, 1, "", result)))
    assert {(event.about.kind, event.reason) for event in found} == {
        ("Node", "DisruptionBlocked"),
        ("NodeClaim", "DisruptionBlocked"),
    }
    assert {event.message for event in found if event.about.kind == "Node"} == {
        "Cannot disrupt Node: 1 of its pods would have no place elsewhere: default/d"
    }


def test_ev1_d64_a_node_that_drifts_is_blocked_by_what_kept_it_from_consolidation() -> None:
    """Its pods had no place before it drifted, and nobody looks again: the verdict is the same."""
    world = drifted()
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    name, why = claim_of(world).name, Reason("no-place", {"count": 1, "pods": ["default/d"]})
    events.recall([replace(last, payload=decided(Verdict(name, "consolidation", "keep", why)))])
    found = events.apply(replace(last, payload=decided(Verdict(name, "drift", "drifted", Reason("drifted")))))
    assert {(event.about.kind, event.reason) for event in found} == {
        ("Node", "DisruptionBlocked"),
        ("NodeClaim", "DisruptionBlocked"),
    }


def test_ev2_d52_a_node_that_drifts_tells_that_no_budget_allows_it() -> None:
    """A budget kept it from consolidation, and now keeps it from drift: the verdict is the same."""
    world = drifted()
    world.see(Observation(replace(world.runtime.state.facts.pools["default"], budgets=(Budget("0"),))))
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    name, why = claim_of(world).name, Reason("budget", {"nodepool": "default"})
    events.recall([replace(last, payload=decided(Verdict(name, "consolidation", "keep", why)))])
    (event,) = events.apply(replace(last, payload=decided(Verdict(name, "drift", "drifted", Reason("drifted")))))
    assert (event.about.kind, event.message) == ("NodePool", NONE.format("Drifted"))


def test_ev1_another_pod_that_blocks_is_told_though_one_was_told_a_moment_ago() -> None:
    world = half_empty()
    events, last, name = DecisionEvents(world.runtime.state), world.store.entries[-1], claim_of(world).name
    keys = []
    for pod in PODS[3:]:
        why = Reason("pod-do-not-disrupt", {"pod": f"default/{pod}"})
        found = events.apply(replace(last, payload=decided(Verdict(name, "consolidation", "keep", why))))
        keys += [event.key for event in found if event.about.kind == "Node"]
    assert len(keys) == len(set(keys)) == 2


def test_ev1_d30_a_pod_of_another_node_blocks_none() -> None:
    """A move of two nodes that is given up for a pod of one says so of both. Node `n2` was told to be blocked by a pod
    that runs on `n1`, and the pod's PodDisruptionBudget that it keeps `n2`."""
    world = two_nodes()
    why = Reason("pod-do-not-disrupt", {"pod": "default/a"})
    verdicts = tuple(Verdict(claim, "consolidation", "keep", why) for claim in world.runtime.state.facts.claims)
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    found = events.apply(replace(last, payload=Decision("moves", 1, 1, 1, "", ProposedMovesResult(verdicts=verdicts))))
    told_of = [(event.about.kind, event.about.name) for event in found if event.about.kind != "NodeClaim"]
    assert told_of == [("Node", "n1"), ("Pod", "a")]


def test_d59_d67_a_node_of_a_static_nodepool_has_no_event_of_consolidation() -> None:
    world = half_empty()
    why = Reason("static-nodepool")
    verdict = Verdict(claim_of(world).name, "consolidation", "keep", why)
    assert DecisionEvents(world.runtime.state).apply(replace(world.store.entries[-1], payload=decided(verdict))) == []


def decided(verdict: Verdict) -> Decision:
    return Decision("moves", 1, 1, 1, "", ProposedMovesResult(verdicts=(verdict,)))


def test_ev2_d52_a_drifted_node_names_drift() -> None:
    world = drifted()
    world.see(Observation(replace(world.runtime.state.facts.pools["default"], budgets=(Budget("0"),))))
    assert NONE.format("Drifted") in blocked_pools(world)
