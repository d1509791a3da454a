"""Which claims have to go, and why the others stay (D-35, D-55…D-59, D-131, A-354…A-362, L-189)."""

from __future__ import annotations

import msgspec

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.record.decisions import TaintNode
from kerf.engine.record.observations import (
    InstanceSeen,
    InterruptionSeen,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from tests.support.lives import PODS, claim_of, decide, in_service, launched, show_taint, types
from tests.support.world import World


def emptied(**changes: object) -> World:
    world = in_service(**changes)
    world.after(60_000)
    for name in PODS:
        world.gone(name)
    decide(world)
    return world


def test_d57_the_end_of_a_pod_restarts_the_quiet_time() -> None:
    world = in_service(consolidate_after=60_000)
    world.after(60_000)
    for name in PODS:
        ending = msgspec.structs.replace(world.pods[name], deleting=world.now)
        assert world.see(Observation(ending)) == []
        assert world.gone(name) == []
    quiet_from = world.now
    world.after(10_000)
    assert claim_of(world).verdict == "empty-not-long-enough"
    assert world.runtime.next_due() == quiet_from + 45_000, "so that it may go after 60 s"
    assert world.after(35_000) == []
    assert claim_of(world).verdict == "move-proposed"
    assert world.after(14_999) == []
    (taint,) = world.after(1)
    assert isinstance(taint, TaintNode)


def test_d54_consolidate_after_never_keeps_empty_nodes() -> None:
    world = emptied(consolidate_after=None)
    assert claim_of(world).verdict == "consolidate-after-never"
    assert world.after(7 * 86_400_000) == []


def test_d131_a_node_expires_whatever_runs_on_it() -> None:
    world = in_service(expire_after=3_600_000)
    created = claim_of(world).created
    (taint,) = world.after(created + 3_600_000 - world.now)
    assert isinstance(taint, TaintNode)
    assert claim_of(world).why == "expired"


def test_a355_a_spot_interruption_taints_at_once_and_marks_the_offering() -> None:
    world = in_service(capacity_type="spot")
    claim = claim_of(world)
    (taint,) = world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", claim.instance)))
    assert isinstance(taint, TaintNode)
    assert claim_of(world).why == "interrupted"
    assert "spot|m5.large|us-west-2a" in world.runtime.state.facts.unavailable


def test_s46_pods_of_a_going_node_get_new_capacity_at_once() -> None:
    world = in_service(capacity_type="spot")
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", claim_of(world).instance)))
    world.after(1_000)
    ((_, order),) = world.launches()
    assert order.offers[0].zone == "us-west-2b"


def test_a344_duplicate_foreign_and_advisory_messages_change_nothing() -> None:
    world = in_service(capacity_type="spot")
    instance = claim_of(world).instance
    assert world.see(Observation(InterruptionSeen("m-1", "rebalance_recommendation", instance))) == []
    assert world.see(Observation(InterruptionSeen("m-2", "spot_interrupted", "i-foreign"))) == []
    assert len(world.see(Observation(InterruptionSeen("m-3", "spot_interrupted", instance)))) == 1
    assert world.see(Observation(InterruptionSeen("m-3", "spot_interrupted", instance))) == []
    assert types(world).count("claim.tainted") == 1


def test_a_stronger_reason_replaces_a_weaker_one() -> None:
    world = emptied()
    assert claim_of(world).why == "empty"
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", claim_of(world).instance)))
    assert claim_of(world).why == "interrupted"
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    assert claim_of(world).why == "interrupted"
    assert types(world).count("claim.reason-raised") == 1


def test_a361_a_failed_check_leaves_no_time_to_a_node_that_is_interrupted_already() -> None:
    """Of a planned maintenance, pods are waited for. Once the instance is broken there is nothing to wait for."""
    world = in_service(termination_grace_period=300_000)
    instance = claim_of(world).instance
    world.see(Observation(InterruptionSeen("m-1", "event_status", instance)))
    assert claim_of(world).deadline == world.now + 300_000
    for message, kind in (("m-2", "system_status"), ("m-3", "instance_status"), ("m-4", "event_status")):
        world.see(Observation(InterruptionSeen(message, kind, instance)))
        assert (claim_of(world).deadline, claim_of(world).detail) == (world.now, "system_status")
    assert types(world).count("claim.reason-raised") == 1


def test_l189_the_grace_period_sets_the_deadline() -> None:
    world = in_service(termination_grace_period=300_000)
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    assert claim_of(world).deadline == world.now + 300_000


def test_d138_w81_a_claim_without_a_node_is_ended_without_a_drain() -> None:
    world = launched()
    (end,) = world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    assert type(end).__name__ == "TerminateInstance"


def test_a_verdict_is_recorded_when_its_reason_changes_and_only_then() -> None:
    world = in_service()
    before = len(world.store.entries)
    pod = world.pods["a"]
    for _ in range(5):
        world.see(Observation(pod))
    added = [e.type for e in world.store.entries[before:]]
    assert added == ["pod.seen"] * 5


def test_a_drained_node_of_an_interrupted_claim_ends() -> None:
    world = in_service(capacity_type="spot")
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", claim_of(world).instance)))
    world.answer_all()
    show_taint(world)
    assert claim_of(world).state == "draining"


def test_a_node_that_pods_of_a_going_node_were_planned_onto_is_not_empty() -> None:
    """Otherwise a replacement comes and goes for as long as a PodDisruptionBudget holds the pods."""
    world = in_service(termination_grace_period=600_000)
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order, instance="i-2")
    provider = "aws:///us-west-2a/i-2"
    world.node("n2", provider)
    world.answer_all()
    world.node("n2", provider, registered="true")
    world.answer_all()
    world.node("n2", provider, registered="true", initialized="true")
    world.after(120_000)
    replacement = world.runtime.state.facts.claims[order.claim]
    assert (replacement.state, replacement.verdict) == ("initialized", "awaiting-pods")


def test_s49_no_node_is_launched_for_pods_that_nobody_may_evict() -> None:
    world = in_service()
    held = PodDisruptionBudget("uid-pdb", "default", "pdb", Selector(), max_unavailable="0")
    world.see(Observation(held))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.after(60_000)
    assert world.launches() == []
    assert types(world).count("claim.requested") == 1
    world.see(Observation(msgspec.structs.replace(held, max_unavailable="1", disruptions_allowed=1)))
    world.after(1_000)
    assert types(world).count("claim.requested") == 2


def test_a_pod_that_ends_without_a_grace_period_restarts_the_quiet_time_too() -> None:
    world = in_service(consolidate_after=60_000)
    world.after(60_000)
    for name in PODS:
        assert world.gone(name) == []
    world.after(10_000)
    assert claim_of(world).verdict == "empty-not-long-enough"
    world.after(35_000)
    (taint,) = world.after(15_000)
    assert isinstance(taint, TaintNode)


def test_a344_messages_out_of_order_say_the_same_in_the_end() -> None:
    """The news of the end overtakes the warning; the warning comes again when the claim is long over."""
    world = in_service(capacity_type="spot")
    name, instance = claim_of(world).name, claim_of(world).instance
    world.see(Observation(InterruptionSeen("m-2", "instance_terminated", instance, sent=world.now)))
    assert claim_of(world).why == "interrupted"
    assert world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", instance, sent=world.now - 120_000))) == []
    assert types(world).count("claim.tainted") == 1
    world.see(Observation(InstanceSeen(instance, "gone")), Observation(ObjectGone("node", "n1")))
    assert name not in world.runtime.state.facts.claims
    assert world.see(Observation(InterruptionSeen("m-0", "spot_interrupted", instance))) == []
