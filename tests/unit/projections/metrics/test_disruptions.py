"""When disruptions are counted, and for what (D-116, D-153; M-9, M-13, M-14, M-24)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.record.claim_events import DrainStarted, Initialized, InstanceVanished, PodForced
from kerf.engine.record.decisions import (
    Decision,
    DeleteNode,
    Move,
    MoveStepResult,
    PlannedClaim,
    ProposedMovesResult,
)
from kerf.engine.record.observations import InterruptionSeen, LaunchAnswered, ObjectGone, Observation, SettingsSeen
from kerf.engine.state.state import Facts, State
from kerf.projections.metrics.cluster_gauges import cluster_gauges
from kerf.projections.metrics.counters import RecordCounters
from tests.support.lives import PROVIDER, UNREGISTERED, claim_of, decide, half_empty, in_service, launched, show_taint
from tests.support.metrics import Samples, counted, scraped, value
from tests.support.world import World
from tests.support.worlds.drain import drain, put, serving

HOUR = 3_600_000
DISRUPTED, PODS = "karpenter_nodeclaims_disrupted_total", "karpenter_pods_disruption_initiated_total"
LEFT = "karpenter_pods_drained_total"
VALIDATIONS = "karpenter_voluntary_disruption_failed_validations_total"


def started() -> World:
    """A move has started; its candidate waits for what replaces it."""
    world = half_empty()
    put(world, "daemon", daemon=True)
    decide(world)
    return world


def replaced(world: World) -> None:
    """The replacement comes into service."""
    ((ref, order),) = world.launches()
    show_taint(world)
    world.answer_launch(ref, order, instance="i-2")
    other = next(claim for claim in world.runtime.state.facts.claims.values() if claim.instance == "i-2")
    for step in ({"taints": (UNREGISTERED,)}, {"registered": "true"}, {"registered": "true", "initialized": "true"}):
        world.node("n2", other.provider_id, **step)
        world.answer_all()


def test_m13_d116_a_candidate_counts_when_it_goes_and_not_when_its_move_starts() -> None:
    world = started()
    assert value(counted(world), DISRUPTED) == value(counted(world), PODS) == 0
    assert value(counted(world), "karpenter_voluntary_disruption_decisions_total", decision="replace") == 1
    replaced(world)
    assert value(counted(world), DISRUPTED, reason="underutilized", termination_mode="graceful") == 1


def test_m13_d118_an_abandoned_move_disrupts_nothing() -> None:
    world = started()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message="none")))
    assert value(counted(world), "karpenter_voluntary_disruption_queue_failures_total") == 1
    assert value(counted(world), DISRUPTED, reason="underutilized") == 0
    assert value(counted(world), DISRUPTED, reason="insufficient_capacity") == 1, "the replacement is"


def test_m7_d118_replacements_that_were_never_initialized_count() -> None:
    """Three were launched, and one came into service before the move was given up; one that only removes has none."""
    world = started()
    state, last = world.runtime.state, world.store.entries[-1]
    names = ("r1", "r2", "r3")
    counters = RecordCounters(state, "aws")
    for payload in (
        decision(MoveStepResult("7.0", "started", Reason("drifted"), begun=move(*names))),
        Initialized("r2", "n9"),
        decision(MoveStepResult("7.0", "abandoned", Reason("launch-failed"))),
        decision(MoveStepResult("8.0", "started", Reason("drifted"), begun=move())),
        decision(MoveStepResult("8.0", "abandoned", Reason("timeout"))),
    ):
        counters.apply(replace(last, payload=payload))
    found = scraped(exposition(counters.families()))
    assert value(found, "karpenter_voluntary_disruption_queue_failures_total") == 2


def move(*replacements: str) -> Move:
    return Move(
        "drifted", ("old",), tuple(PlannedClaim(name, "default", (), (), (), {}, 0.0, ()) for name in replacements)
    )


def decision(result: MoveStepResult) -> Decision:
    return Decision("moves", 1, 1, 1, "", result)


def test_m14_the_pods_that_need_another_place_count_and_those_of_daemonsets_do_not() -> None:
    world = started()
    replaced(world)
    assert value(counted(world), PODS, reason="underutilized") == 2


def test_m13_m14_what_leaves_no_choice_counts_at_once() -> None:
    world = half_empty(expire_after=HOUR, consolidation_policy="WhenEmpty")
    put(world, "daemon", daemon=True)
    world.after(HOUR)
    found = counted(world)
    assert value(found, DISRUPTED, reason="expired") == 1
    assert value(found, PODS, reason="expired") == 2


def test_m13_a_claim_counts_once_when_a_stronger_reason_comes() -> None:
    world = started()
    replaced(world)
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    claims = world.runtime.state.facts.claims.values()
    assert {claim.why for claim in claims if claim.node == "n1"} == {"interrupted"}
    assert value(counted(world), DISRUPTED) == 1


def test_m13_a_process_that_begins_later_counts_no_claim_again() -> None:
    world = started()
    replaced(world)
    metrics = RecordCounters(world.runtime.state, "aws")
    (drained,) = (entry for entry in world.store.entries if isinstance(entry.payload, DrainStarted))
    metrics.apply(drained)
    assert value(scraped(exposition(metrics.families())), DISRUPTED) == 0


def unlisted() -> World:
    """The cloud no longer lists the instance, and its node is not ready: the deletion of its Node is asked for."""
    world = in_service()
    put(world, "daemon", daemon=True)
    world.see(*world.runtime.listed([]))
    world.node("n1", PROVIDER, ready=False, registered="true", initialized="true")
    assert [type(order) for _, order in world.intents] == [DeleteNode]
    return world


def test_l237_m13_m14_a_claim_that_the_cloud_does_not_list_is_garbage_collected() -> None:
    world = unlisted()
    assert value(counted(world), DISRUPTED, reason="garbage_collected") == 1
    assert value(counted(world), PODS, reason="garbage_collected") == 5, "the pods that need another place"
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    found = counted(world)
    assert value(found, DISRUPTED) == value(found, DISRUPTED, reason="garbage_collected", nodepool="default") == 1
    assert value(found, PODS) == 5
    assert value(found, "karpenter_nodeclaims_terminated_total") == 1


def test_l237_m13_an_instance_that_ended_before_a_node_came_is_garbage_collected() -> None:
    world = launched()
    world.instance("i-1", "terminated")
    assert world.runtime.state.facts.claims == {}
    assert value(counted(world), DISRUPTED, reason="garbage_collected", capacity_type="on-demand") == 1


def test_l237_in_observe_mode_nobody_knows_why_a_claim_vanished() -> None:
    world = launched()
    world.instance("i-1", "terminated")
    metrics = RecordCounters(State(Facts(settings=Settings(observe=True)), world.runtime.state.indexes.blobs), "aws")
    for entry in world.store.entries:
        if not isinstance(entry.payload, SettingsSeen):
            metrics.apply(entry)
    found = scraped(exposition(metrics.families()))
    assert value(found, DISRUPTED) == 0
    assert value(found, "karpenter_nodeclaims_terminated_total") == 1


def test_l237_m13_an_instance_that_ends_after_an_interruption_counts_as_that() -> None:
    world = half_empty()
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    world.answer_all()
    world.instance("i-1", "terminated")
    world.answer_all()
    world.gone("d")
    world.gone("e")
    world.see(Observation(ObjectGone("node", "n1")))
    assert value(counted(world), DISRUPTED, reason="garbage_collected") == 0
    assert value(counted(world), DISRUPTED) == 1


def test_l237_m13_a_process_that_begins_later_counts_no_collected_claim_again() -> None:
    world = unlisted()
    metrics = RecordCounters(world.runtime.state, "aws")
    seen = len(world.store.entries)
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    later = world.store.entries[seen:]
    assert any(isinstance(entry.payload, InstanceVanished) for entry in later)
    for entry in later:
        metrics.apply(entry)
    found = scraped(exposition(metrics.families()))
    assert value(found, DISRUPTED) == 0
    took = "karpenter_nodeclaims_termination_duration_seconds_count"
    assert value(found, took) == value(counted(world), took) == 1, "since when it went is known"


@pytest.mark.parametrize(("expires", "reason"), [(None, "Deleted"), (HOUR, "Expired")])
def test_m24_d153_forced_pods_count_under_the_reason_of_their_node(expires: int | None, reason: str) -> None:
    world = serving(termination_grace_period=60_000, expire_after=expires)
    put(world, "held", grace=30, do_not_disrupt="true")
    if expires is None:
        drain(world)
    else:
        world.after(HOUR)
        world.answer_all()
        show_taint(world)
    world.after(31_000)
    world.answer_all()
    assert value(counted(world), LEFT, reason=reason) == 1
    assert value(counted(world), LEFT, reason="Forceful Termination") == 0


def test_m9_d50_a_node_that_drains_uses_the_budget_up() -> None:
    """Until the cloud has accepted to end its instance (D-158)."""
    world = serving()
    put(world, "held", do_not_disrupt="true")
    drain(world)
    assert claim_of(world).state == "draining"
    state = world.runtime.state
    metrics = RecordCounters(State(Facts(), state.indexes.blobs), "aws")
    found = scraped(exposition(cluster_gauges(state, metrics, world.now)))
    assert value(found, "karpenter_nodepools_nodes_consuming_budgets", reason="Empty") == 1


def test_m13_d165_what_somebody_deletes_is_no_disruption() -> None:
    world = serving()
    put(world, "a")
    drain(world)
    world.answer_all()
    world.see(Observation(ObjectGone("pod", "uid-a")))
    found = counted(world)
    assert value(found, DISRUPTED) == value(found, PODS) == 0
    assert value(found, LEFT, reason="Deleted") == 1


def test_m13_m14_a_candidate_that_leaves_no_choice_meanwhile_counts_at_once() -> None:
    """It waits for its replacement no longer, though its Node does not show the taint yet (D-132)."""
    world = started()
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    assert not any(isinstance(entry.payload, DrainStarted) for entry in world.store.entries)
    found = counted(world)
    assert value(found, DISRUPTED, reason="spot_interrupted") == value(found, DISRUPTED) == 1
    assert value(found, PODS, reason="spot_interrupted") == 2


def test_m25_d136_a_candidate_whose_node_is_ill_meanwhile_counts_as_repaired() -> None:
    """Once: a claim that goes already is not deleted again."""
    world = half_empty()
    world.see(Observation(SettingsSeen(Settings(node_repair=True))))
    node = world.runtime.state.facts.nodes["n1"]
    for index in range(2, 7):
        world.see(Observation(replace(node, name=f"n{index}", provider_id=f"aws:///z/{index}")))
    decide(world)
    claims = world.runtime.state.facts.claims.values()
    assert [claim.why for claim in claims if claim.node] == ["underutilized"]
    world.see(Observation(replace(node, ready=False, ready_since=world.now - HOUR)))
    assert [claim.why for claim in claims if claim.node] == ["unhealthy"]
    found = counted(world)
    repaired = "karpenter_nodeclaims_unhealthy_disrupted_total"
    assert value(found, repaired, condition="ready", capacity_type="on-demand") == value(found, repaired) == 1
    assert value(found, DISRUPTED) == value(found, DISRUPTED, reason="unhealthy") == 1


def test_m13_a362_a_deleted_claim_is_not_disrupted_by_an_interruption_that_comes_later() -> None:
    world = serving()
    put(world, "a")
    drain(world)
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    assert claim_of(world).why == "interrupted"
    found = counted(world)
    assert value(found, DISRUPTED) == value(found, PODS) == 0


def test_m24_d153_pods_leave_for_the_stronger_reason_that_came_meanwhile() -> None:
    world = started()
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    world.answer_all()
    show_taint(world)
    for _ in range(12):  # its pods wait for their new node, but not for ever
        world.after(10_000)
        world.answer_all()
    assert value(counted(world), LEFT, reason="Interrupted") == value(counted(world), LEFT) >= 2


def test_m24_d153_a_pod_of_a_claim_without_a_reason_leaves_by_force() -> None:
    world = in_service()
    metrics = RecordCounters(world.runtime.state, "aws")
    last = world.store.entries[-1]
    metrics.apply(replace(last, payload=PodForced(claim_of(world).name, "uid-a", "default/a", 1)))
    assert value(scraped(exposition(metrics.families())), LEFT, reason="Forceful Termination") == 1


def test_m13_d118_an_abandoned_candidate_counts_by_what_it_goes_for_in_the_end() -> None:
    world = started()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message="none")))
    world.answer_all()
    world.instance("i-1", "terminated")
    world.see(Observation(ObjectGone("node", "n1")))
    found = counted(world)
    assert value(found, DISRUPTED, reason="garbage_collected") == 1
    assert value(found, DISRUPTED, reason="underutilized") == 0


def test_l237_m13_a_candidate_whose_instance_ends_while_it_waits_is_garbage_collected() -> None:
    """It had not gone yet: nobody deletes its NodeClaim before its replacement is there (D-116)."""
    world = started()
    world.instance("i-1", "terminated")
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    assert "n1" not in {claim.node for claim in world.runtime.state.facts.claims.values()}
    found = counted(world)
    assert value(found, DISRUPTED) == value(found, DISRUPTED, reason="garbage_collected") == 1


def test_m13_a_candidate_whose_node_is_gone_goes_for_its_move() -> None:
    """There is nothing to drain: its instance is ended at once."""
    world = started()
    world.see(Observation(ObjectGone("node", "n1")))
    world.answer_all()
    world.instance("i-1", "terminated")
    assert "i-1" not in {claim.instance for claim in world.runtime.state.facts.claims.values()}
    assert value(counted(world), DISRUPTED) == value(counted(world), DISRUPTED, reason="underutilized") == 1


def test_m14_a_claim_that_never_registered_has_no_pods_to_count() -> None:
    world = launched()
    world.after(HOUR)
    found = counted(world)
    assert value(found, DISRUPTED, reason="registration_timeout") == 1
    assert PODS not in found


def step(world: World, *results: ProposedMovesResult | MoveStepResult) -> Samples:
    """The counters of a process that sees these decisions at the position 7."""
    metrics, last = RecordCounters(world.runtime.state, "aws"), world.store.entries[-1]
    for result in results:
        metrics.apply(replace(last, position=7, payload=Decision("moves", 1, 1, 1, "", result)))
    return scraped(exposition(metrics.families()))


def withdrawn(code: str) -> MoveStepResult:
    return MoveStepResult("7.0", "withdrawn", Reason(code))


def test_m5_failed_validations_count_candidates_and_not_moves() -> None:
    move = Move("underutilized", ("a", "b"))
    found = step(half_empty(), ProposedMovesResult((move,)), withdrawn("churn"))
    assert value(found, VALIDATIONS, consolidation_type="multi") == value(found, VALIDATIONS) == 2


@pytest.mark.parametrize("code", ["scheduling", "left-over", "moved-lately"])
def test_m5_d110_pods_that_would_have_no_place_fail_no_validation(code: str) -> None:
    """Only candidates that are none any more count, and those that the budgets hold."""
    found = step(half_empty(), ProposedMovesResult((Move("underutilized", ("a",)),)), withdrawn(code))
    assert value(found, VALIDATIONS) == 0


def test_m5_d108_a_move_for_drift_is_never_validated() -> None:
    found = step(half_empty(), ProposedMovesResult((Move("drifted", ("a",)),)), withdrawn("churn"))
    assert value(found, VALIDATIONS) == 0


def test_m6_a_search_that_ended_by_its_steps_counts_as_a_timeout() -> None:
    name = "karpenter_voluntary_disruption_consolidation_timeouts_total"
    assert value(step(half_empty(), ProposedMovesResult()), name) == 0
    assert value(step(half_empty(), ProposedMovesResult(exhausted=True)), name, consolidation_type="multi") == 1


def test_a_move_is_forgotten_with_its_claims() -> None:
    """Else what is kept of moves would grow for as long as the process runs."""
    world = started()
    replaced(world)
    world.answer_all()
    for name in ("d", "e", "daemon"):
        world.see(Observation(ObjectGone("pod", f"uid-{name}")))
    for _ in range(3):
        world.after(6_000)
        world.answer_all()
    world.instance("i-1", "terminated")
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    (new,) = world.runtime.state.facts.claims.values()
    assert new.node == "n2"
    metrics = RecordCounters(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    for entry in world.store.entries:
        metrics.apply(entry)
    assert [move.claims for move in metrics._moves.values()] == [(new.name,)], "it is empty, and may go"
