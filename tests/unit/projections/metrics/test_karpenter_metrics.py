"""What each of Karpenter's metrics counts, one by one (L-180, L-363 to L-431)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, Owner, Pod, PodShape
from kerf.engine.model.labels import EC2NODECLASS, ZONE
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import DeleteNode
from kerf.engine.record.observations import (
    EffectAnswered,
    InputRefused,
    InterruptionSeen,
    LaunchAnswered,
    LaunchError,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
    SettingsSeen,
)
from kerf.engine.state.state import Facts, State
from kerf.projections.metrics.counted_claims import counted_claim, disruption_labels
from kerf.projections.metrics.counters import RecordCounters
from kerf.projections.metrics.lone_nodes import LoneNodes
from tests.support.lives import (
    DISRUPTED,
    PODS,
    PROVIDER,
    asked,
    claim_of,
    decide,
    drained,
    ends,
    half_empty,
    in_service,
    joins,
    show_taint,
)
from tests.support.metrics import counted, gauges, scraped, value
from tests.support.world import Mi, World, pool


def gone(world: World) -> None:
    """Somebody deletes the NodeClaim; its pods are evicted, its instance ends."""
    drained(world)
    world.answer_all()
    ends(world)


# ── what is counted ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("grace", "mode"), [(None, "graceful"), (0, "forceful"), (60_000, "eventual")])
def test_l180_l364_why_a_claim_ends_with_its_mode(grace: int | None, mode: str) -> None:
    """A launch that times out, whose NodePool's policy has nothing to do with it."""
    world = asked(termination_grace_period=grace)
    world.after(300_000)
    (key,) = counted(world)["karpenter_nodeclaims_disrupted_total"]
    assert dict(key) == {
        "nodepool": "default", "reason": "launch_timeout", "capacity_type": "", "consolidation_policy": "",
        "termination_mode": mode,
    }  # fmt: skip


def test_l370_l371_l374_the_end_of_a_node_is_timed_from_the_decision_and_its_instance_from_its_order() -> None:
    world = in_service()
    began = world.now
    gone(world)
    found = counted(world)
    whole = value(found, "karpenter_nodeclaims_termination_duration_seconds_sum", nodepool="default")
    assert whole == (world.now - began) / 1000 == 35
    assert value(found, "karpenter_nodeclaims_instance_termination_duration_seconds_sum", nodepool="default") == 30
    assert value(found, "karpenter_nodes_termination_duration_seconds_sum", nodepool="default") == 35
    assert value(found, "karpenter_nodes_termination_duration_seconds_count", nodepool="default") == 1


def test_l369_a_repair_is_counted_by_the_condition_and_the_image() -> None:
    world = in_service()
    claim_of(world).image = "ami-1"
    world.see(Observation(SettingsSeen(Settings(node_repair=True))))
    for index in range(2, 7):
        other = replace(world.runtime.state.facts.nodes["n1"], name=f"n{index}", provider_id=f"aws:///z/{index}")
        world.see(Observation(other))
    metrics = RecordCounters(world.runtime.state, "aws")
    before = len(world.store.entries)
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, ready=False, ready_since=world.now)))
    world.after(30 * 60_000)
    for entry in world.store.entries[before:]:
        metrics.apply(entry)
    (key,) = scraped(exposition(metrics.families()))["karpenter_nodeclaims_unhealthy_disrupted_total"]
    assert dict(key) == {
        "condition": "ready", "nodepool": "default", "capacity_type": "on-demand", "image_id": "ami-1",
    }  # fmt: skip


def test_l396_l397_evictions_by_the_answer_and_drained_pods_by_why() -> None:
    world = in_service()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    (first, _), *others = world.intents
    answers = [EffectAnswered(first, False, "429"), *(EffectAnswered(ref, True, "200") for ref, _ in others)]
    world.see(*(Observation(answer) for answer in answers))
    found = counted(world)
    assert value(found, "karpenter_pods_eviction_requests_total", code="429") == 1
    assert value(found, "karpenter_pods_eviction_requests_total", code="200") == len(others) == 4
    assert value(found, "karpenter_pods_drained_total", reason="Deleted") == 4


def test_m23_an_eviction_that_nobody_answers_has_no_code_to_count() -> None:
    world = in_service()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    world.answer_all(ok=False, code="KERF602")
    assert "karpenter_pods_eviction_requests_total" not in counted(world)


def test_l398_pods_of_a_node_that_is_disrupted() -> None:
    world = in_service(capacity_type="spot")
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1", sent=world.now - 4_000)))
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    found = counted(world)
    assert value(found, "karpenter_pods_disruption_initiated_total", reason="spot_interrupted") == 5


@pytest.mark.parametrize(
    "kind",
    [
        "spot_interrupted", "scheduled_change", "event_status", "instance_stopped", "instance_terminated",
        "capacity_reservation_interrupted", "capacity_reservation_expiring", "instance_status", "system_status",
    ],
)  # fmt: skip
def test_a362_a411_an_interrupted_claim_counts_by_the_kind_of_its_message(kind: str) -> None:
    world = in_service(capacity_type="spot")
    world.see(Observation(InterruptionSeen("m-1", kind, "i-1")))
    (key,) = counted(world)["karpenter_nodeclaims_disrupted_total"]
    assert dict(key) == {
        "nodepool": "default", "reason": kind, "capacity_type": "spot", "consolidation_policy": "",
        "termination_mode": "",
    }  # fmt: skip


def test_a362_the_kind_is_known_to_a_process_that_begins_later() -> None:
    world = in_service()
    world.see(Observation(InterruptionSeen("m-1", "instance_terminated", "i-1")))
    claim = counted_claim(claim_of(world))
    assert disruption_labels(claim, None)[1] == "instance_terminated"


def test_refused_inputs_count_by_where_they_came_from() -> None:
    world = in_service()
    refused = [Observation(InputRefused("KERF350", "queue", name)) for name in ("m-1", "m-2")]
    world.see(*refused)
    assert value(counted(world), "kerf_refused_inputs_total", source="queue", code="KERF350") == 2


@pytest.mark.parametrize(
    ("kind", "category"),
    [("instance_status", "InstanceStatus"), ("system_status", "SystemStatus"), ("event_status", "EventStatus")],
)
def test_l431_a353_what_ec2_says_of_an_instance_is_no_message(kind: str, category: str) -> None:
    world = in_service()
    world.see(Observation(InterruptionSeen("m-1", kind, "i-1")))
    found = counted(world)
    assert value(found, "karpenter_interruption_instance_status_unhealthy_total", category=category) == 1
    assert value(found, "karpenter_interruption_received_messages_total") == 0


def test_l427_a292_each_offering_that_a_launch_was_refused_by_karpenters_reason() -> None:
    """EC2's code is not the reason: Karpenter has none of its own for a lack of capacity (A-313)."""
    world = asked()
    ((ref, order),) = world.launches()
    refused = {
        "us-west-2a": ("InsufficientInstanceCapacity", "none left", "LaunchFailed"),
        "us-west-2b": ("VcpuLimitExceeded", "too many", "VCPULimitExceeded"),
        "us-west-2c": ("InvalidParameterValue", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded"),
    }
    errors = tuple(
        LaunchError(code, message, "m5.large", zone, "on-demand", zone_id=f"usw2-az{zone[-1]}")
        for zone, (code, message, _) in refused.items()
    )
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code="LaunchFailed", errors=errors)))
    found = counted(world)["karpenter_cloudprovider_instance_launch_failures_total"]
    reasons = {dict(key)["zone"]: (dict(key)["reason"], amount) for key, amount in found.items()}
    assert reasons == {zone: (reason, 1) for zone, (_, _, reason) in refused.items()}
    assert {dict(key)["capacity_type"] for key in found} == {"on-demand"}
    assert {dict(key)["zone_id"] for key in found} == {"usw2-aza", "usw2-azb", "usw2-azc"}


def test_l427_an_end_that_the_cloud_refuses() -> None:
    world = asked()
    ((launch, order),) = world.launches()
    world.answer_launch(launch, order, zone_id="usw2-az1")
    joins(world)
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    for name in PODS:
        world.gone(name)
    world.after(5_000)
    ((ref, _),) = world.intents
    world.see(Observation(EffectAnswered(ref, False, "UnauthorizedOperation")))
    world.after(60_000)
    ((ref, _),) = world.intents
    world.see(Observation(EffectAnswered(ref, True, "200")))
    refused = "karpenter_cloudprovider_instance_termination_failures_total"
    assert counted(world)[refused] == {(("zone", "us-west-2a"), ("zone_id", "usw2-az1")): 1}
    errors = {"controller": "nodeclaim.lifecycle", "method": "Delete", "provider": "aws", "error": ""}
    assert value(counted(world), "karpenter_cloudprovider_errors_total", **errors) == 1, "L-414"


def test_a330_an_end_that_waits_for_a_zonal_shift_is_an_error_and_no_refusal() -> None:
    """EC2 is not asked."""
    world = in_service()
    for name in PODS:
        world.gone(name)
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    world.after(5_000)
    ((ref, _),) = world.intents
    world.see(Observation(EffectAnswered(ref, False, "ZonalShift")))
    found = counted(world)
    assert value(found, "karpenter_cloudprovider_instance_termination_failures_total") == 0
    assert value(found, "karpenter_cloudprovider_errors_total", method="Delete") == 1


def test_l405_l406_a_replacement_counts_as_one_for_its_nodepool() -> None:
    world = half_empty()
    decide(world)
    found = counted(world)
    wanted = {"decision": "replace", "reason": "underutilized", "consolidation_type": "single"}
    assert value(found, "karpenter_voluntary_disruption_decisions_total", **wanted) == 1
    assert value(found, "karpenter_voluntary_disruption_decisions_by_nodepool_total", nodepool="default", **wanted) == 1
    made = value(found, "karpenter_nodeclaims_created_total", nodepool="default", reason="underutilized")
    assert made == 1, "L-366"


def test_l409_a_candidate_that_the_second_look_holds_back() -> None:
    world = half_empty()
    world.after(10_000)
    world.see(Observation(pool(budgets=(Budget("0"),))))
    world.after(15_000)
    world.after(60_000)
    found = counted(world)
    failed = value(found, "karpenter_voluntary_disruption_failed_validations_total", consolidation_type="single")
    assert failed == 1
    assert value(found, "karpenter_voluntary_disruption_decisions_total") == 0


def test_l410_a_move_that_is_given_up_has_its_decision_twice() -> None:
    """The quirk: its consolidation_type is its decision."""
    world = half_empty()
    decide(world)
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity")))
    (key,) = counted(world)["karpenter_voluntary_disruption_queue_failures_total"]
    assert dict(key) == {"decision": "replace", "reason": "underutilized", "consolidation_type": "replace"}


# ── gauges ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_l363_cpu_in_cores_other_resources_in_base_units_by_names_in_lower_case() -> None:
    world = in_service(limits={"cpu": 12_500, "memory": 64 * 1024 * Mi, "example.com/Big-GPU": 3})
    found = gauges(world)
    assert value(found, "karpenter_nodepools_limit", nodepool="default", resource_type="cpu") == 12.5
    assert value(found, "karpenter_nodepools_limit", nodepool="default", resource_type="memory") == 64 * 1024 * Mi
    assert value(found, "karpenter_nodepools_limit", nodepool="default", resource_type="example.com/big_gpu") == 3


def test_l363_what_is_gone_has_no_series() -> None:
    world = in_service()
    assert value(gauges(world), "karpenter_nodes_current_lifetime_seconds", node_name="n1") == 0
    world.after(90_000)
    assert value(gauges(world), "karpenter_nodes_current_lifetime_seconds", node_name="n1") == 90, "L-376"
    gone(world)
    assert "karpenter_nodes_current_lifetime_seconds" not in gauges(world)


def test_l364_the_labels_of_a_node() -> None:
    world = in_service()
    key = next(iter(gauges(world)["karpenter_nodes_allocatable"]))
    assert {label: text for label, text in key if label != "resource_type"} == {
        "node_name": "n1", "phase": "Ready", "managed": "true", "nodepool": "default", "capacity_type": "on-demand",
        "zone": "us-west-2a", "region": "", "instance_type": "m5.large", "arch": "amd64", "os": "linux",
        "windows_build": "",
    }  # fmt: skip


def test_l364_the_age_of_a_node_has_the_labels_of_its_provider() -> None:
    world = in_service()
    node = world.runtime.state.facts.nodes["n1"]
    own = {"karpenter.k8s.aws/instance-family": "m5", "topology.k8s.aws/zone-id": "usw2-az1", "team": "shop"}
    world.see(Observation(replace(node, labels={**node.labels, **own})))
    (key,) = gauges(world)["karpenter_nodes_current_lifetime_seconds"]
    found = dict(key)
    assert (found["node_name"], found["instance_family"], found["zone_id"]) == ("n1", "m5", "usw2-az1")
    assert found["instance_gpu_name"] == ""
    assert "team" not in found


def test_l379_l380_what_daemons_ask_for_and_what_a_node_keeps() -> None:
    world = in_service()
    shape = PodShape(requests={"cpu": 250})
    digest, _ = content(shape)
    owner = Owner(DAEMONSET, "agent", "uid-agent")
    world.see(
        Observation(
            Pod("uid-agent-1", "default", "agent-1", digest, node="n1", phase="Running", owner=owner), {digest: shape}
        )
    )
    node: Node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, capacity={**node.allocatable, "cpu": node.allocatable["cpu"] + 70})))
    found = gauges(world)
    assert value(found, "karpenter_nodes_total_daemon_requests", node_name="n1", resource_type="cpu") == 0.25
    assert value(found, "karpenter_nodes_total_daemon_requests", node_name="n1", resource_type="pods") == 1
    assert value(found, "karpenter_nodes_total_pod_requests", node_name="n1", resource_type="pods") == 6
    assert value(found, "karpenter_nodes_system_overhead", node_name="n1", resource_type="cpu") == 0.07
    assert value(found, "karpenter_nodes_system_overhead", node_name="n1", resource_type="memory") == 0


def test_l383_l384_usage_and_cost_of_a_nodepool() -> None:
    world = in_service()
    node: Node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, capacity={"cpu": 2_000, "memory": 7_577 * Mi})))
    found = gauges(world)
    assert value(found, "karpenter_nodepools_usage", nodepool="default", resource_type="nodes") == 1
    assert value(found, "karpenter_nodepools_usage", nodepool="default", resource_type="cpu") == 2
    assert value(found, "karpenter_nodepools_cost_total", nodepool="default") == claim_of(world).price == 0.096


def test_l387_a_node_that_is_not_ready_or_goes_spends_of_the_budget() -> None:
    world = in_service()
    name = "karpenter_nodepools_nodes_consuming_budgets"
    assert value(gauges(world), name, reason="Empty") == 0
    world.node("n1", PROVIDER, ready=False, registered="true", initialized="true")
    assert {dict(key)["reason"]: gauge for key, gauge in gauges(world)[name].items()} == {
        "Underutilized": 1, "Empty": 1, "Drifted": 1,
    }  # fmt: skip
    world.node("n1", PROVIDER, registered="true", initialized="true")
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    assert value(gauges(world), name, reason="Drifted") == 1


def test_m21_m23_a_restart_knows_what_was_asked_for() -> None:
    """An eviction that is answered by the next process, and an instance that ends then."""
    world = in_service()
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    metrics, asked = RecordCounters(world.runtime.state, "aws"), len(world.store.entries)
    world.answer_all()
    for entry in world.store.entries[asked:]:
        metrics.apply(entry)
    assert value(scraped(exposition(metrics.families())), "karpenter_pods_eviction_requests_total", code="200") == 5
    for name in PODS:
        world.gone(name)
    world.after(5_000)
    world.answer_all()
    metrics, asked = RecordCounters(world.runtime.state, "aws"), len(world.store.entries)
    ends(world)
    for entry in world.store.entries[asked:]:
        metrics.apply(entry)
    took = "karpenter_nodeclaims_instance_termination_duration_seconds"
    assert value(scraped(exposition(metrics.families())), f"{took}_sum", nodepool="default") == 30


def test_m21_l371_after_a_restart_the_end_counts_from_the_first_order() -> None:
    """The order was repeated, because the instance took longer than a minute."""
    world = in_service()
    drained(world)
    world.answer_all()
    world.after(60_000)
    world.answer_all()
    metrics, asked = RecordCounters(world.runtime.state, "aws"), len(world.store.entries)
    ends(world)
    for entry in world.store.entries[asked:]:
        metrics.apply(entry)
    took = "karpenter_nodeclaims_instance_termination_duration_seconds_sum"
    assert value(scraped(exposition(metrics.families())), took, nodepool="default") == 90
    assert value(counted(world), took, nodepool="default") == 90


def test_m17_m18_m20_d140_a_node_without_a_claim_counts_as_a_node_that_ended() -> None:
    world = in_service()
    world.node("lone", "aws:///us-west-2a/i-9", registered="true", initialized="true")
    node = world.runtime.state.facts.nodes["lone"]
    labels = {**node.labels, EC2NODECLASS: "default", ZONE: "us-west-2b"}
    world.after(60_000)
    going = replace(node, deleting=world.now, labels=labels)
    world.see(Observation(going))
    world.answer_all()
    world.after(5_000)
    world.see(Observation(replace(going, taints=(DISRUPTED,))))
    later, asked = RecordCounters(world.runtime.state, "aws"), len(world.store.entries)
    world.answer_all()
    world.see(Observation(ObjectGone("node", "lone")))
    for entry in world.store.entries[asked:]:
        later.apply(entry)
    for found in (counted(world), scraped(exposition(later.families()))):
        ended = "karpenter_nodes_terminated_total"
        assert value(found, ended, nodepool="default", zone="us-west-2b") == value(found, ended) == 1
        assert value(found, "karpenter_nodes_termination_duration_seconds_sum", nodepool="default") == 5
        assert value(found, "karpenter_nodes_lifetime_duration_seconds_sum", nodepool="default") == 65
        assert value(found, "karpenter_nodes_drained_total") == 0, "M-19: only with a NodeClaim"


def test_a_node_that_took_the_name_of_one_without_a_claim_is_not_counted_as_that_one() -> None:
    """The end of the first one was not seen; the second one has a NodeClaim, which counts by itself."""
    node = Node("lone", provider_id="aws:///us-west-2a/i-9", created=1, deleting=2)
    nodes = LoneNodes(Facts())
    nodes.see(node)
    nodes.asked([DeleteNode("", "lone")])
    nodes.see(replace(node, deleting=0))
    nodes.see(replace(node, deleting=3))
    assert nodes.gone("lone") is None


def test_what_is_kept_of_a_claim_goes_with_it() -> None:
    """Else it would grow with each replacement that could not be launched."""
    world = half_empty()
    decide(world)
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity")))
    metrics = RecordCounters(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    for entry in world.store.entries:
        metrics.apply(entry)
    assert metrics._claims.keys() == world.runtime.state.facts.claims.keys()
