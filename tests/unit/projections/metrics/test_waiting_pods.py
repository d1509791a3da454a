"""How long pods wait, and which of them have no place (L-389 to L-402, S-43, S-52, S-175)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.observations import (
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from kerf.projections.metrics.cluster_gauges import cluster_gauges
from kerf.projections.metrics.counters import RecordCounters
from tests.support.lives import (
    PODS,
    claim_of,
    in_service,
    show_taint,
)
from tests.support.metrics import counted, gauges, scraped, value
from tests.support.world import Mi, World


def test_l389_a_pod_is_timed_until_it_is_ready() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.after(7_000)
    world.bind("a", "n1")
    found = counted(world)
    assert value(found, "karpenter_pods_startup_duration_seconds_count") == 1
    assert value(found, "karpenter_pods_startup_duration_seconds_sum") == 7


def test_l391_l393_how_long_a_pod_waits_from_its_creation_and_from_its_plan() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    world.after(4_000)
    found = gauges(world)
    assert value(found, "karpenter_pods_unbound_time_seconds", name="a", namespace="default") == 5
    assert value(found, "karpenter_pods_unstarted_time_seconds", name="a", namespace="default") == 5
    assert value(found, "karpenter_pods_provisioning_unbound_time_seconds", name="a") == 4
    assert value(found, "karpenter_pods_provisioning_unstarted_time_seconds", name="a") == 4
    world.bind("a", "n1")
    found = gauges(world)
    assert "karpenter_pods_unbound_time_seconds" not in found
    assert "karpenter_pods_provisioning_unbound_time_seconds" not in found


def test_l394_l400_a_pod_that_was_seen_and_has_no_decision_yet() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.now += 500
    found = gauges(world)
    assert value(found, "karpenter_pods_provisioning_scheduling_undecided_time_seconds", name="a") == 0.5
    assert value(found, "karpenter_scheduler_queue_depth", controller="provisioner") == 1
    world.after(500)
    found = gauges(world)
    assert "karpenter_pods_provisioning_scheduling_undecided_time_seconds" not in found
    assert value(found, "karpenter_scheduler_queue_depth", controller="provisioner") == 0


def test_l401_l402_pods_that_are_refused_and_pods_that_no_node_can_take() -> None:
    world = World()
    world.prepare()
    world.pending("large", memory=1_000_000 * Mi)
    world.pending("odd", node_selector={"kubernetes.io/hostname": "n1"})
    world.after(1_000)
    found = counted(world)
    assert value(found, "karpenter_scheduler_unschedulable_pods_count", controller="provisioner") == 1
    assert value(found, "karpenter_scheduler_ignored_pods_count") == 1


def test_l402_s175_pods_that_were_left_count_for_as_long_as_they_wait() -> None:
    """No plan is made any more when the last pod that waits is gone."""
    world = World()
    world.prepare()
    world.pending("large", "larger", memory=1_000_000 * Mi)
    world.pending("odd", node_selector={"kubernetes.io/hostname": "n1"})
    world.after(1_000)
    plans = [entry for entry in world.store.entries if entry.type == "decision.made"]
    world.gone("large")
    world.bind("larger", "n9")
    world.gone("odd")
    assert [entry for entry in world.store.entries if entry.type == "decision.made"] == plans
    found = counted(world)
    assert value(found, "karpenter_scheduler_unschedulable_pods_count", controller="provisioner") == 0
    assert value(found, "karpenter_scheduler_ignored_pods_count") == 0


def test_l394_s43_a_pod_that_is_refused_before_planning_is_decided() -> None:
    world = World()
    world.prepare()
    world.pending("odd", node_selector={"kubernetes.io/hostname": "n1"})
    world.after(1_000)
    found = gauges(world)
    assert "karpenter_pods_provisioning_scheduling_undecided_time_seconds" not in found
    assert value(found, "karpenter_scheduler_queue_depth", controller="provisioner") == 0
    assert value(counted(world), "karpenter_pods_scheduling_decision_duration_seconds_count") == 1


def test_l391_l402_a_restart_goes_on_with_the_pods_that_wait() -> None:
    """A plan is made when something changes, which may be hours later."""
    world = World()
    world.prepare()
    world.pending("large", memory=1_000_000 * Mi)
    world.pending("odd", node_selector={"kubernetes.io/hostname": "n1"})
    world.pending("a")
    world.after(1_000)
    metrics = RecordCounters(world.runtime.state, "aws")
    for entry in world.store.scan(world.runtime.state.facts.plan - 1, world.runtime.state.facts.plan):
        metrics.recall(entry)
    world.now += 4_000
    found = scraped(exposition([*metrics.families(), *cluster_gauges(world.runtime.state, metrics, world.now)]))
    assert value(found, "karpenter_scheduler_unschedulable_pods_count", controller="provisioner") == 1
    assert value(found, "karpenter_scheduler_ignored_pods_count") == 1
    assert value(found, "karpenter_scheduler_queue_depth", controller="provisioner") == 0
    assert value(found, "karpenter_pods_unbound_time_seconds", name="large") == 5
    assert value(found, "karpenter_pods_provisioning_unbound_time_seconds", name="a") == 4
    assert value(found, "karpenter_pods_scheduling_decision_duration_seconds_count") == 0, "measured before"
    before = len(world.store.entries)
    world.bind("large", "n9")
    for entry in world.store.entries[before:]:
        metrics.apply(entry)
    found = scraped(exposition(metrics.families()))
    assert value(found, "karpenter_scheduler_unschedulable_pods_count", controller="provisioner") == 0
    assert value(found, "karpenter_pods_bound_duration_seconds_sum") == 5


def test_l402_a_restart_goes_on_with_the_pods_of_a_node_that_goes() -> None:
    """They need another place, and the plan has none."""
    world = in_service()
    world.see(Observation(replace(world.runtime.state.facts.pools["default"], limits={"cpu": 0})))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    world.after(20_000)
    metrics = RecordCounters(world.runtime.state, "aws")
    for entry in world.store.scan(world.runtime.state.facts.plan - 1, world.runtime.state.facts.plan):
        metrics.recall(entry)
    for found in (counted(world), scraped(exposition(metrics.families()))):
        assert value(found, "karpenter_scheduler_unschedulable_pods_count", controller="provisioner") == len(PODS)


def test_l402_the_pods_of_a_buffer_that_is_gone_are_left_no_more() -> None:
    """No plan follows when the last one goes; a pod that waits stays counted."""
    world = World(capacity_buffers=True)
    world.prepare()
    shape = PodShape(requests={"memory": 1_000_000 * Mi})
    digest, _ = content(shape)
    world.see(
        Observation(PodTemplate("default", "spare", digest), {digest: shape}),
        Observation(CapacityBuffer("buf", "default", "b", template="spare", replicas=2)),
    )
    world.pending("large", memory=1_000_000 * Mi)
    world.after(1_000)
    plan = world.runtime.state.facts.plan
    later, seen = RecordCounters(world.runtime.state, "aws"), len(world.store.entries)
    for entry in world.store.scan(plan - 1, plan):
        later.recall(entry)
    unplaced = "karpenter_scheduler_unschedulable_pods_count"
    for found in (counted(world), scraped(exposition(later.families()))):
        assert value(found, unplaced, controller="provisioner") == 3
    world.see(Observation(ObjectGone("capacitybuffer", "default/b")))
    for entry in world.store.entries[seen:]:
        later.apply(entry)
    assert world.runtime.state.facts.plan == plan, "nobody plans"
    for found in (counted(world), scraped(exposition(later.families()))):
        assert value(found, unplaced, controller="provisioner") == 1


def test_l389_a_pod_that_is_bound_when_it_is_first_seen_is_timed_until_it_is_ready() -> None:
    """A DaemonSet's, say. How long it was without a node is not known."""
    world = in_service()
    pod = replace(world.pods["a"], uid="uid-new", name="new", phase="Pending", ready=False, created=world.now)
    world.see(Observation(pod))
    world.now += 3_000
    assert value(gauges(world), "karpenter_pods_unstarted_time_seconds", name="new") == 3
    before = counted(world)
    world.see(Observation(replace(pod, phase="Running", ready=True)))
    found = counted(world)
    started, bound = "karpenter_pods_startup_duration_seconds", "karpenter_pods_bound_duration_seconds_count"
    assert value(found, f"{started}_count") == value(before, f"{started}_count") + 1
    assert value(found, f"{started}_sum") == value(before, f"{started}_sum") + 3
    assert value(found, bound) == value(before, bound)
