"""The replacements of a move that has started, and what becomes of the move with them (D-107, D-117 to D-121)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.budgets import budget_usage
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.disruption.consolidation.young_pods import LATELY
from kerf.engine.disruption.moves.budget_headroom import budget_use
from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepool_hash import hashed
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import DRAINING, GOING, INITIALIZED, REGISTERED, TAINTED
from kerf.engine.record.claim_events import Requested
from kerf.engine.record.decisions import Decision, LaunchInstance, MoveStepResult, ProposedMovesResult
from kerf.engine.record.observations import LaunchAnswered, NodeClaimDeletionSeen, ObjectGone, Observation
from kerf.engine.scheduling.problem.departing_pods import MIN_LEAD
from tests.support.lives import DISRUPTED, PODS, PROVIDER, decide, half_empty, in_service
from tests.support.records import re_derived
from tests.support.world import World, pool

OTHER = "aws:///us-west-2a/i-2"


def started(**changes: object) -> tuple[World, str, LaunchInstance]:
    """The node keeps two of its five pods, and a smaller one is on its way."""
    world = half_empty(**changes)
    decide(world)
    ((ref, order),) = world.launches()
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    return world, ref, order


def old(world: World) -> NodeClaim:
    return next(claim for claim in world.runtime.state.facts.claims.values() if claim.node == "n1")


def last(world: World) -> tuple[str, str]:
    """What the latest step of a move was, and why."""
    found = [entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision)]
    step = [result for result in found if isinstance(result, MoveStepResult)][-1]
    return step.step, step.reason.code


def join(world: World, *, initialized: bool = True) -> None:
    """The replacement's node registers, and is initialized."""
    world.node("n2", OTHER)
    world.answer_all()
    world.node("n2", OTHER, registered="true")
    world.answer_all()
    if initialized:
        world.node("n2", OTHER, registered="true", initialized="true")


def test_d107_a_replacement_is_made_like_any_claim_of_its_nodepool() -> None:
    template: dict[str, Any] = {
        "labels": {"team": "a"}, "annotations": {"owner": "b"}, "termination_grace_period": 60_000,
        "expire_after": 86_400_000,
    }  # fmt: skip
    given = hashed(pool(**template))
    world = in_service(**template)
    world.after(LATELY)
    world.see(Observation(given))
    for name in PODS[:3]:
        world.gone(name)
    decide(world)
    ((_, order),) = world.launches()
    made = next(e.payload for e in world.store.entries[::-1] if isinstance(e.payload, Requested))
    assert (made.claim, made.node_pool) == (order.claim, "default")
    assert made.claim.startswith("default-")
    assert made.labels["team"] == "a"
    assert made.annotations["owner"] == "b"
    assert made.annotations[lbl.NODEPOOL_HASH] == given.hash
    assert (made.expire_after, made.termination_grace_period) == (86_400_000, 60_000)
    kept = {requirement.key: requirement.values for requirement in made.requirements}
    assert kept[lbl.CAPACITY_TYPE] == ("on-demand",)
    assert made.instance_types == ("c5.large",), "only what is cheaper than the node that goes"


def test_d107_s167_a_nodepool_above_its_limit_may_still_get_smaller() -> None:
    """Unlike the reference, which refuses every replacement then. Above it stays, and nothing is launched, where what
    remains without the node is too much already."""
    world = in_service()
    world.after(LATELY)
    world.see(Observation(pool(limits={"memory": 4_000 * 2**20})))  # m5.large has 7,577 Mi, c5.large 3,788
    for name in PODS[:3]:
        world.gone(name)
    decide(world)
    assert [order.offers[0].instance_type for _, order in world.launches()] == ["c5.large"]
    refused = in_service()
    refused.after(LATELY)
    refused.see(Observation(pool(limits={"memory": 3_000 * 2**20})))
    for name in PODS[:3]:
        refused.gone(name)
    decide(refused)
    assert refused.launches() == []
    assert old(refused).state == INITIALIZED


def test_d119_when_all_are_in_service_the_move_is_over_and_its_node_stays_condemned() -> None:
    world, ref, order = started()
    world.answer_launch(ref, order, instance="i-2")
    join(world)
    facts = world.runtime.state.facts
    assert (facts.moves, old(world).state) == ({}, DRAINING)
    results = [e.payload.result for e in world.store.entries if isinstance(e.payload, Decision)]
    before = sum(isinstance(result, ProposedMovesResult) for result in results)
    world.after(120_000)
    passes = [e.payload.result for e in world.store.entries if isinstance(e.payload, Decision)]
    later = [result for result in passes if isinstance(result, ProposedMovesResult)][before:]
    assert all(old(world).name not in move.claims for result in later for move in result.proposed)
    assert old(world).state == DRAINING


@pytest.mark.parametrize("kind", ["insufficient-capacity", "nodeclass-not-ready"])
def test_d121_what_cannot_be_launched_ends_the_move_at_once(kind: str) -> None:
    world, ref, order = started()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind=kind)))
    assert list(world.runtime.state.facts.claims) == [old(world).name]
    assert last(world) == ("abandoned", "replacement-lost")
    assert old(world).state == INITIALIZED


def test_d121_w63_what_is_not_launched_within_five_minutes_ends_it() -> None:
    """Until then the claim is there, and the move goes on."""
    world, _, order = started()
    requested = world.runtime.state.facts.claims[order.claim].created
    world.after(requested + 299_999 - world.now)
    assert (last(world), old(world).state) == (("started", "underutilized"), TAINTED)
    world.after(1)
    assert order.claim not in world.runtime.state.facts.claims
    assert (last(world), old(world).state) == (("abandoned", "replacement-lost"), INITIALIZED)


def test_d121_what_registers_and_is_never_initialized_ends_it_by_the_limit_and_stays() -> None:
    """D-117, D-118: kerf does not take an existing replacement away with the move."""
    world, ref, order = started()
    world.answer_launch(ref, order, instance="i-2")
    join(world, initialized=False)
    world.after(600_001)
    assert (last(world), old(world).state) == (("abandoned", "replacement-late"), INITIALIZED)
    assert world.runtime.state.facts.claims[order.claim].state == REGISTERED


def test_w63_a_replacement_that_is_gone_is_rolled_back() -> None:
    world, ref, order = started()
    world.answer_launch(ref, order, instance="i-2")
    world.instance("i-2", "terminated")
    world.see(Observation(ObjectGone("node", "n2")))
    assert order.claim not in world.runtime.state.facts.claims
    assert (last(world), old(world).state) == (("abandoned", "replacement-lost"), INITIALIZED)


SHUT = PodDisruptionBudget("u-pdb", "default", "all", Selector(), "0", None, 0)
HOURS = 2 * 3_600_000


def shielded(world: World, *names: str) -> None:
    """Their owners write do-not-disrupt into these pods."""
    world.see(*(Observation(replace(world.pods[name], do_not_disrupt="true")) for name in names))


def joined(world: World, ref: str, order: LaunchInstance) -> tuple[tuple[str, str], str]:
    """The replacement is in service: the move's latest step, and the state of the node that was to go."""
    world.answer_launch(ref, order, instance="i-2")
    join(world)
    return last(world), old(world).state


@pytest.mark.parametrize(
    "shut", [SHUT, replace(SHUT, max_unavailable="0%"), replace(SHUT, max_unavailable="", min_available="100%"),
             replace(SHUT, max_unavailable="", min_available="2", expected_pods=2, desired_healthy=2)],
)  # fmt: skip
def test_d118_a_move_is_called_off_before_its_drain_when_its_pods_may_not_leave_any_more(
    shut: PodDisruptionBudget,
) -> None:
    world, ref, order = started()
    world.see(Observation(shut))
    assert (last(world), old(world).state) == (("started", "underutilized"), TAINTED), "it may open again in time"
    assert joined(world, ref, order) == (("abandoned", "pod-budget-exhausted"), INITIALIZED)
    assert world.runtime.state.facts.claims[order.claim].state == INITIALIZED
    assert re_derived(world.store) == world.store.entries


def test_d118_a_budget_that_opens_again_in_time_calls_nothing_off() -> None:
    world, ref, order = started()
    world.see(Observation(SHUT))
    world.see(Observation(replace(SHUT, max_unavailable="1", disruptions_allowed=1)))
    assert joined(world, ref, order) == (("started", "underutilized"), DRAINING)


def test_d14_pods_that_leave_one_by_one_or_wait_until_others_are_healthy_call_nothing_off() -> None:
    for healthy in (0, 1):
        world, ref, order = started()
        world.see(Observation(replace(SHUT, max_unavailable="1", disruptions_allowed=healthy, expected_pods=2)))
        assert joined(world, ref, order) == (("started", "underutilized"), DRAINING)


def test_d118_several_budgets_of_one_pod_call_a_move_off() -> None:
    world, ref, order = started()
    world.see(
        *(Observation(replace(SHUT, uid=f"u-{n}", name=n, max_unavailable="1", disruptions_allowed=1)) for n in "ab")
    )
    assert joined(world, ref, order) == (("abandoned", "several-pod-budgets"), INITIALIZED)


def test_d118_one_pod_that_stays_for_good_calls_a_move_off_where_no_deadline_ends_its_drain() -> None:
    world, ref, order = started()
    shielded(world, "d")
    assert joined(world, ref, order) == (("abandoned", "pod-do-not-disrupt"), INITIALIZED)
    world, ref, order = started(termination_grace_period=HOURS)
    shielded(world, "d")
    assert joined(world, ref, order) == (("started", "underutilized"), DRAINING), "the other one needs the new node"
    world, ref, order = started(termination_grace_period=HOURS)
    shielded(world, "d", "e")
    assert joined(world, ref, order) == (("abandoned", "pod-do-not-disrupt"), INITIALIZED)


def test_d118_pods_that_a_deadline_takes_soon_need_the_new_node() -> None:
    world, ref, order = started(termination_grace_period=MIN_LEAD)
    world.see(Observation(SHUT))
    assert joined(world, ref, order) == (("started", "underutilized"), DRAINING)


def test_d118_a_node_that_goes_for_a_stronger_reason_meanwhile_is_not_kept() -> None:
    world, ref, order = started()
    world.see(Observation(SHUT))
    world.see(Observation(NodeClaimDeletionSeen(old(world).name, "kubectl")))
    world.answer_launch(ref, order, instance="i-2")
    join(world)
    assert old(world).state == DRAINING


def unused() -> tuple[World, str]:
    """The drain has begun, its pods may not leave any more, and nobody is expected on the replacement."""
    world, ref, order = started(budgets=(Budget("1"),))
    for name in "de":
        world.pods[name] = replace(world.pods[name], started=1)
    world.see(*(Observation(world.pods[name]) for name in "de"))
    joined(world, ref, order)
    world.see(Observation(SHUT))
    world.after(1_000)
    return world, order.claim


def tainted(world: World, claim: str) -> bool:
    return world.runtime.state.facts.claims[claim].state in GOING


def test_d60_d50_an_unused_node_goes_although_its_pool_lets_one_go_at_a_time() -> None:
    """It takes nothing from its NodePool: that has as many nodes as before the launch."""
    world, claim = unused()
    state = world.runtime.state
    assert (budget_use(state)["default"].consuming, old(world).state) == (1, DRAINING)
    decide(world)
    world.after(60_000)
    assert tainted(world, claim)
    assert state.facts.claims[claim].why == "empty"
    assert budget_use(state)["default"].consuming == 1
    assert budget_usage(cluster_of(state, world.now))["default"].consuming == 1
    assert re_derived(world.store) == world.store.entries


def test_d48_d60_an_unused_node_stays_while_the_budgets_let_nothing_go() -> None:
    world, claim = unused()
    world.see(Observation(pool(budgets=(Budget("0"),))))
    decide(world)
    world.after(120_000)
    assert not tainted(world, claim)


@pytest.mark.parametrize("what", ["started later", "leaves", "another came", "gone"])
def test_d50_a_node_that_is_empty_for_another_reason_takes_its_part_of_the_budget(what: str) -> None:
    world, claim = unused()
    for name in "de":
        changes = {
            "started later": {"started": world.now},
            "leaves": {"deleting": world.now + 30_000},
        }.get(what, {})
        world.see(Observation(replace(world.pods[name], **changes)))
        if what == "gone":
            world.gone(name)
    if what == "another came":
        world.pending("f")
        world.bind("f", "n2")
    found = next(node for node in cluster_of(world.runtime.state, world.now).nodes if node.place.claim == claim)
    assert not found.unused
