"""When disruption passes run, what they say, and how a move goes on (D-16, D-20, D-22, D-108 to D-118)."""

from __future__ import annotations

import msgspec
import pytest

from kerf.engine.disruption.budgets import window_ends
from kerf.engine.disruption.consolidation.young_pods import LATELY
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.nodeclaim.state_table import TAINTED
from kerf.engine.record.decisions import (
    LaunchInstance,
    ProposedMovesResult,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.observations import LaunchAnswered, Observation
from tests.support.lives import DISRUPTED, PODS, PROVIDER, claim_of, decide, half_empty, in_service
from tests.support.world import World, pool
from tests.support.worlds.disruption import HOUR, passes, steps
from tests.support.worlds.two_nodes import two_nodes


def started(**changes: object) -> tuple[World, str, LaunchInstance]:
    """Its replacement is on its way."""
    world = half_empty(**changes)
    decide(world)
    ((ref, order),) = world.launches()
    return world, ref, order


def test_without_a_change_there_is_no_pass() -> None:
    """D-16: kerf does not look on a period."""
    world = in_service()
    world.after(60_000)
    before = len(passes(world))
    for _ in range(5):
        world.after(HOUR)
    assert len(passes(world)) == before
    world.see(Observation(pool(weight=1)))
    world.after(1_000)
    assert len(passes(world)) == before + 1


def test_d16_two_passes_are_ten_seconds_apart() -> None:
    world = in_service()
    world.after(60_000)
    world.after(60_000)
    world.see(Observation(pool(weight=1)))
    world.after(1_000)
    before, looked = len(passes(world)), world.now
    world.see(Observation(pool(weight=2)))
    assert world.after(9_999) == []
    assert len(passes(world)) == before
    world.after(1)
    assert (len(passes(world)), world.now - looked) == (before + 1, 10_000)


@pytest.mark.parametrize("nominated", [False, True])
@pytest.mark.parametrize(("left", "waits"), [(19_000, 4_000), (21_000, 6_000), (21_001, 1_000)])
def test_d8_d16_a_pass_waits_five_seconds_for_the_nodes_of_one_scale_in(
    left: int, waits: int, *, nominated: bool
) -> None:
    """The node of the latest pod event may go after `left` ms: it is Consolidatable then, or pods that were expected on
    it have not come. A move is proposed 15 s before it starts."""
    world = in_service(consolidate_after=0 if nominated else left)
    world.after(60_000)
    world.after(LATELY)
    if nominated:
        claim_of(world).nominated_until = world.now + left
    before = len(passes(world))
    for name in PODS[:3]:
        world.gone(name)
    assert world.after(waits - 1) == []
    assert len(passes(world)) == before
    world.after(1)
    assert len(passes(world)) == before + 1
    assert bool(passes(world)[-1].proposed) == (waits > 1_000)


@pytest.mark.parametrize(("between", "waits"), [(900, 1_900), (1_100, 1_000)])
def test_d16_a_pass_waits_a_second_for_the_next_pod_of_a_scale_in(between: int, waits: int) -> None:
    """Pods of two nodes go one after the other."""
    world = two_nodes(consolidate_after=0)
    world.after(60_000)
    before, begun, came = len(passes(world)), world.now, 0
    for step in range(30):
        if step * 100 in (0, between):
            world.gone("ab"[step > 0])
        came = came or (world.now - begun if len(passes(world)) > before else 0)
        world.after(100)
    assert came == waits


def test_a_pass_that_came_to_the_same_says_nothing() -> None:
    world = in_service()
    world.after(60_000)
    assert claim_of(world).verdict == "nothing-cheaper"
    world.see(Observation(pool(weight=1)))
    world.after(10_000)
    assert passes(world)[-1] == ProposedMovesResult()


def test_d108_a_move_is_looked_at_again_before_it_starts() -> None:
    world = half_empty()
    assert world.after(10_000) == []
    (move,) = passes(world)[-1].proposed
    assert (move.why, move.claims, len(move.replacements)) == ("underutilized", (claim_of(world).name,), 1)
    assert claim_of(world).state == "initialized"
    assert world.after(14_999) == []
    launch, taint = world.after(1)
    assert isinstance(launch, LaunchInstance)
    assert isinstance(taint, TaintNode)
    assert [(step.step, step.reason.code) for step in steps(world)] == [("started", "underutilized")]


def test_d110_pods_that_nobody_may_evict_any_more_withdraw_it() -> None:
    world = half_empty()
    world.after(10_000)
    world.see(Observation(PodDisruptionBudget("uid-pdb", "default", "pdb", Selector())))
    assert world.after(15_000) == []
    assert [(step.step, step.reason.code) for step in steps(world)] == [("withdrawn", "churn")]
    assert claim_of(world).state == "initialized"
    world.after(10_000)
    assert claim_of(world).verdict == "pod-budget-exhausted"


def test_d115_pods_are_expected_on_the_replacement() -> None:
    world, _, order = started()
    facts = world.runtime.state.facts
    assert {facts.targets[f"uid-{name}"] for name in PODS[3:]} == {order.claim}


def test_d116_the_drain_waits_for_the_replacement_and_no_longer() -> None:
    world, ref, order = started()
    old = next(claim for claim in world.runtime.state.facts.claims.values() if claim.node == "n1")
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    assert old.state == TAINTED
    world.answer_launch(ref, order, instance="i-2")
    provider = "aws:///us-west-2a/i-2"
    world.node("n2", provider)
    world.answer_all()
    world.node("n2", provider, registered="true")
    world.answer_all()
    assert old.state == TAINTED
    world.node("n2", provider, registered="true", initialized="true")
    assert old.state == "draining"
    assert world.runtime.state.facts.moves == {}


def test_l189_the_grace_period_runs_from_the_drain_and_not_while_a_replacement_starts() -> None:
    world, ref, order = started(termination_grace_period=60_000)
    old = next(claim for claim in world.runtime.state.facts.claims.values() if claim.node == "n1")
    assert not old.deadline
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    world.answer_launch(ref, order, instance="i-2")
    world.after(120_000)
    provider = "aws:///us-west-2a/i-2"
    world.node("n2", provider)
    world.answer_all()
    world.node("n2", provider, registered="true")
    world.answer_all()
    world.node("n2", provider, registered="true", initialized="true")
    assert old.state == "draining"
    assert old.deadline == world.now + 60_000


def test_d118_w30_a_lost_replacement_takes_the_taint_back() -> None:
    world, ref, order = started()
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    (untaint,) = world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity")))
    assert untaint == UntaintNode(claim_of(world).name, "n1")
    assert claim_of(world).state == "initialized"
    assert [(step.step, step.reason.code) for step in steps(world)][-1] == ("abandoned", "replacement-lost")
    assert world.runtime.state.facts.targets == {}
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true")
    world.after(10_000)
    assert claim_of(world).verdict == "held-back"
    assert world.runtime.next_due() == world.runtime.state.facts.holds[claim_of(world).name].until - 15_000


def test_d117_w62_a_replacement_may_take_ten_minutes() -> None:
    world, ref, order = started()
    begun = world.now
    world.answer_launch(ref, order, instance="i-2")
    old = next(claim for claim in world.runtime.state.facts.claims.values() if claim.node == "n1")
    world.after(begun + 600_000 - world.now)
    assert old.state == TAINTED
    world.after(1)
    assert old.state == "initialized"
    assert steps(world)[-1].reason.code == "replacement-late"


def test_d20_w64_a_node_that_is_to_stay_loses_the_disrupted_taint() -> None:
    world = in_service()
    (intent,) = world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    assert intent == UntaintNode(claim_of(world).name, "n1")


def test_d45_the_end_of_a_window_is_known() -> None:
    now = 1_767_225_600_000 + 10 * 60_000  # ten past midnight
    closed = Budget("0", "0 0 * * *", 30 * 60_000)
    assert window_ends(pool(budgets=(closed,)), now) == now + 20 * 60_000
    assert window_ends(pool(budgets=(Budget("0", "0 1 * * *", 60_000), Budget("10%"))), now) == 0
    assert window_ends(pool(budgets=(msgspec.structs.replace(closed, schedule="nonsense"),)), now) == 0


def test_a_node_whose_pods_cost_nothing_to_evict_is_not_taken_as_empty() -> None:
    """Unlike D-35: pods that run are work that would be lost."""
    world = in_service()
    for name in PODS:
        free = msgspec.structs.replace(world.pods[name], deletion_cost=-(2**31) + 1)
        world.see(Observation(free))
    world.after(60_000)
    assert claim_of(world).verdict == "nothing-cheaper"
