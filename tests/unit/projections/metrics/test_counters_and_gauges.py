"""Karpenter's metrics from the record and the state (L-362 to L-415, M-1 to M-26)."""

from __future__ import annotations

import pytest

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.record.observations import LaunchAnswered, Observation
from kerf.engine.state.evolve import evolve
from kerf.engine.state.state import Facts, State
from kerf.projections.metrics.cluster_gauges import cluster_gauges
from kerf.projections.metrics.counters import RecordCounters
from kerf.projections.metrics.families import DURATIONS, Distribution
from tests.support.metrics import Samples, counted, scraped, value
from tests.support.records import whole_life
from tests.support.repository import ROOT
from tests.support.simulation.run import HOUR, Run, scale, workshop
from tests.support.world import World


@pytest.fixture(scope="module")
def life() -> Samples:
    return counted(whole_life())


def test_a_life_is_counted_from_request_to_end(life: Samples) -> None:
    """Counters and durations cover a claim from its request to its end (L-366, L-367, L-372, L-373, L-375)."""
    assert life["karpenter_nodeclaims_created_total"] == {
        (("min_values_relaxed", "false"), ("nodepool", "default"), ("reason", "provisioned")): 1
    }
    ended = (("capacity_type", "on-demand"), ("nodepool", "default"), ("zone", "us-west-2a"))
    assert life["karpenter_nodeclaims_terminated_total"] == {ended: 1}
    assert value(life, "karpenter_nodes_created_total", nodepool="default", zone="us-west-2a") == 1
    assert value(life, "karpenter_nodes_terminated_total", nodepool="default", zone="us-west-2a") == 1
    assert value(life, "karpenter_nodes_drained_total", nodepool="default") == 1, "M-19"
    assert value(life, "karpenter_nodes_lifetime_duration_seconds_count", nodepool="default") == 1
    assert value(life, "karpenter_nodeclaims_termination_duration_seconds_count", nodepool="default") == 1


def test_pods_are_timed_from_creation_and_from_the_plan(life: Samples) -> None:
    """Pods are timed from creation and from the plan (L-390, L-392, L-395)."""
    assert value(life, "karpenter_pods_bound_duration_seconds_count") == 5
    assert value(life, "karpenter_pods_scheduling_decision_duration_seconds_count") == 5
    bound = value(life, "karpenter_pods_bound_duration_seconds_sum")
    assert 0 < value(life, "karpenter_pods_provisioning_bound_duration_seconds_sum") <= bound


def test_turns_are_timed_by_what_they_decided() -> None:
    """Turns are timed by what they decided (L-399, L-404)."""
    world = whole_life()
    metrics = RecordCounters(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    passes = [
        entry for entry in world.store.entries if entry.type == "decision.made" and entry.payload.decider == "moves"
    ]
    plans = [entry for entry in world.store.entries if getattr(entry.payload, "decider", "") == "provision"]
    assert passes
    metrics.turned(plans, 0.5)
    metrics.turned(passes[:1], 0.25)
    found = scraped(exposition(metrics.families()))
    assert value(found, "karpenter_scheduler_scheduling_duration_seconds_sum", controller="provisioner") == 0.5
    evaluated = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds"
    assert value(found, f"{evaluated}_sum", reason="empty") == 0.25
    assert value(found, f"{evaluated}_count", reason="underutilized") == 2


def test_timeouts_are_there_before_there_is_one() -> None:
    """Timeouts are there before there is one (L-408)."""
    found = counted(World())["karpenter_voluntary_disruption_consolidation_timeouts_total"]
    assert found == {(("consolidation_type", "single"),): 0, (("consolidation_type", "multi"),): 0}


def test_a_launch_without_capacity_counts_as_an_error_and_a_disruption() -> None:
    """A launch without capacity counts as an error and a disruption (L-368, L-414)."""
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, intent),) = world.launches()
    answer = LaunchAnswered(ref, intent.claim, kind="insufficient-capacity", code="InsufficientInstanceCapacity")
    world.see(Observation(answer))
    found = counted(world)
    error = value(found, "karpenter_cloudprovider_errors_total", error="InsufficientCapacityError", provider="aws")
    assert error == 1
    lost = value(found, "karpenter_nodeclaims_disrupted_total", reason="insufficient_capacity", nodepool="default")
    assert lost == 1


def test_a_scale_in_is_told_with_its_decisions_and_labels() -> None:
    """M-2, M-3, M-13, M-23, M-24; and the gauges of what is left."""
    run = Run(workshop(scale("+1m", 5), scale("+20m", 0)), until=HOUR)
    metrics = RecordCounters(State(Facts(), run.runtime.state.indexes.blobs), "aws")
    for entry in run.entries():
        metrics.apply(entry)
    state = run.runtime.state
    found = scraped(exposition([*metrics.families(), *cluster_gauges(state, metrics, state.facts.at)]))
    disrupted = value(
        found, "karpenter_nodeclaims_disrupted_total", reason="empty", termination_mode="graceful",
        consolidation_policy="when_empty_or_underutilized",
    )  # fmt: skip
    assert disrupted >= 1
    decided = value(found, "karpenter_voluntary_disruption_decisions_total", decision="delete", reason="empty")
    assert 1 <= decided <= disrupted
    by_pool = value(found, "karpenter_voluntary_disruption_decisions_by_nodepool_total", nodepool="default")
    assert by_pool >= decided
    created = value(found, "karpenter_nodeclaims_created_total")
    ended = value(found, "karpenter_nodeclaims_terminated_total")
    assert created - ended == len(state.facts.claims)
    assert value(found, "karpenter_nodepools_usage", nodepool="default", resource_type="nodes") == len(
        state.facts.claims
    )
    assert value(found, "karpenter_cluster_state_node_count") == len(state.facts.nodes)


def test_gauges_tell_of_nodes_pools_and_pods() -> None:
    """Gauges describe nodes, NodePools and pods (L-377, L-378, L-381, L-386, L-388)."""
    run = Run(workshop(scale("+1m", 5)), until=HOUR // 6)
    state = run.runtime.state
    metrics = RecordCounters(state, "aws")
    found = scraped(exposition(cluster_gauges(state, metrics, state.facts.at)))
    nodes = state.facts.nodes
    assert nodes
    for name, node in nodes.items():
        cores = value(found, "karpenter_nodes_allocatable", node_name=name, resource_type="cpu", managed="true")
        assert cores == node.allocatable["cpu"] / 1000
    assert 0 < value(found, "karpenter_cluster_utilization_percent", resource_type="memory") <= 100
    assert value(found, "karpenter_pods_state", phase="Running") == len(
        [pod for pod in state.facts.pods.values() if pod.phase == "Running"]
    )
    assert value(found, "karpenter_nodepools_allowed_disruptions", nodepool="default", reason="Empty") >= 1
    assert value(found, "karpenter_nodepools_cost_total", nodepool="default") == pytest.approx(
        sum(claim.price for claim in state.facts.claims.values())
    )


def test_a_restart_knows_the_claims_that_were_there() -> None:
    """Their ends are counted with their labels."""
    world = whole_life()
    metrics: RecordCounters | None = None
    for entry in world.store.entries:
        if entry.type == "claim.initialized":
            metrics = RecordCounters(_folded(world, entry.position), "aws")
        elif metrics is not None:
            metrics.apply(entry)
    assert metrics is not None
    found = scraped(exposition(metrics.families()))
    assert value(found, "karpenter_nodeclaims_terminated_total", nodepool="default", zone="us-west-2a") == 1
    assert value(found, "karpenter_nodes_terminated_total", nodepool="default") == 1


def _folded(world: World, until: int) -> State:
    state = State(Facts(), world.runtime.state.indexes.blobs)
    for entry in world.store.entries:
        if entry.position <= until:
            evolve(state, entry)
    return state


def test_a_value_at_a_bound_is_in_its_bucket() -> None:
    """Prometheus's buckets are "not above"."""
    found = Distribution(DURATIONS, [0] * (len(DURATIONS) + 1))
    for measured in (1.0, 1.1, 1000.0):
        found.add(measured)
    assert dict(found.cumulative())[1.0] == 1
    assert found.count == 3
    assert dict(found.cumulative())[600.0] == 2


def test_every_metric_is_in_the_documents() -> None:
    run = Run(workshop(), until=60_000)
    metrics = RecordCounters(run.runtime.state, "aws")
    told = [*metrics.families(), *cluster_gauges(run.runtime.state, metrics, 0)]
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert [family.name for family in told if f"`{family.name}`" not in text] == []
