"""What becomes of the reference's one loop: identifiers, waits, memos, conflicts (D-1, D-17 to D-26, D-170)."""

from __future__ import annotations

import pytest

from kerf.engine.disruption.consolidation.sequential_search import choose_commands
from kerf.engine.disruption.eligibility import Candidate, consolidation, find_candidates, judge_node
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import BUDGET_REASONS
from kerf.engine.model.feature_gates import FIELDS
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.state_table import REQUESTED
from kerf.engine.record.claim_events import Tainted
from kerf.engine.record.decisions import TaintNode, UntaintNode
from kerf.engine.record.observations import EffectAnswered, Observation
from kerf.projections.status.nodeclaim import claim_conditions
from tests.support.lives import DISRUPTED, PROVIDER, claim_of, half_empty, in_service, show_taint
from tests.support.scenarios.clusters import cluster, node, pod
from tests.support.scenarios.clusters import pool as node_pool
from tests.support.world import pool
from tests.support.worlds.disruption import HOUR, passes, steps
from tests.support.worlds.two_nodes import two_nodes

# ── D-1 ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_d1_identifiers_are_the_references() -> None:
    """Written out here: a constant that changes is seen."""
    assert (lbl.DISRUPTED_TAINT, lbl.TERMINATION_FINALIZER) == ("karpenter.sh/disrupted", "karpenter.sh/termination")
    assert (lbl.NODEPOOL, lbl.REGISTERED, lbl.INITIALIZED, lbl.CAPACITY_TYPE) == (
        "karpenter.sh/nodepool",
        "karpenter.sh/registered",
        "karpenter.sh/initialized",
        "karpenter.sh/capacity-type",
    )
    assert (lbl.SPOT, lbl.ON_DEMAND, lbl.RESERVED) == ("spot", "on-demand", "reserved")
    assert (lbl.ZONE, lbl.INSTANCE_TYPE) == ("topology.kubernetes.io/zone", "node.kubernetes.io/instance-type")
    assert lbl.EXCLUDE_FROM_LB == "node.kubernetes.io/exclude-from-external-load-balancers"
    assert pool().node_class.label == "karpenter.k8s.aws/ec2nodeclass"
    assert (lbl.DO_NOT_DISRUPT, lbl.POD_DELETION_COST) == (
        "karpenter.sh/do-not-disrupt",
        "controller.kubernetes.io/pod-deletion-cost",
    )
    assert (lbl.NODEPOOL_HASH, lbl.NODEPOOL_HASH_VERSION, lbl.TERMINATION_TIMESTAMP) == (
        "karpenter.sh/nodepool-hash",
        "karpenter.sh/nodepool-hash-version",
        "karpenter.sh/nodeclaim-termination-timestamp",
    )
    assert [reason.karpenter for reason in BUDGET_REASONS] == ["Underutilized", "Empty", "Drifted"]


def test_d1_gates_are_closed_by_default_and_none_is_balanceds() -> None:
    """ReservedCapacity, open in the reference and here, is the AWS provider's to close."""
    assert sorted(FIELDS) == [
        "CapacityBuffer",
        "NodeOverlay",
        "NodeRepair",
        "SpotToSpotConsolidation",
        "StaticCapacity",
    ]
    assert [getattr(Settings(), field) for field in FIELDS.values()] == [False] * 5


def test_d1_conditions_have_the_references_names() -> None:
    world = in_service()
    ready, consolidatable = claim_conditions(claim_of(world), world.runtime.state, world.now + HOUR)[3:5]
    assert [(condition.type, condition.status) for condition in (ready, consolidatable)] == [
        ("Ready", "True"),
        ("Consolidatable", "True"),
    ]
    world.after(60_000)
    for name in "abcde":
        world.gone(name)
    world.after(10_000)
    world.after(15_000)
    assert claim_of(world).why == "empty"
    there = {
        claim_condition.type: claim_condition.reason
        for claim_condition in claim_conditions(claim_of(world), world.runtime.state, world.now)
    }
    assert there["DisruptionReason"] == "Empty"


@pytest.mark.parametrize(
    ("taint", "matches"),
    [
        (DISRUPTED, True),
        (Taint(lbl.DISRUPTED_TAINT, "NoSchedule", "anything"), True),
        (Taint(lbl.DISRUPTED_TAINT, "NoExecute"), False),
        (Taint("karpenter.sh/other", "NoSchedule"), False),
    ],
)
def test_d1_two_taints_match_by_key_and_effect(taint: Taint, matches: bool) -> None:
    """One that is not to be there is taken off (D-20), a similar one is somebody else's."""
    world = in_service()
    world.after(60_000)
    orders = world.node("n1", PROVIDER, registered="true", initialized="true", taints=(taint,))
    assert [type(order) for order in orders] == ([UntaintNode] if matches else [])


# ── D-170: what the reference's design documents say, and its code does not ────────────────────────────────────────


def test_d170_a_duration_on_a_node_holds_nothing() -> None:
    """It does on pods (D-30)."""
    given = cluster(node("a", "small", pod("x"), annotations={lbl.DO_NOT_DISRUPT: "5m"}))
    assert isinstance(judge_node(given.nodes[0], given), Candidate)
    held = cluster(node("a", "small", pod("x", do_not_disrupt="2h")))
    assert isinstance(judge_node(held.nodes[0], held), Reason)


def test_d170_who_saves_most_for_its_disruption_goes_first_and_not_who_disrupts_least() -> None:
    given = cluster(node("dear", "large", pod("a"), pod("b")), node("cheap", "small", pod("c")))
    assert [candidate.name for candidate in find_candidates(given, consolidation).chosen] == ["dear", "cheap"]
    assert [candidate.cost for candidate in find_candidates(given, consolidation).chosen] == [3.0, 2.0]


def test_d170_expiration_waits_for_no_budget_and_no_replacement() -> None:
    world = in_service(expire_after=HOUR, budgets=(Budget("0"),))
    world.after(HOUR)
    assert claim_of(world).why == "expired"
    assert [type(intent) for _, intent in world.intents] == [TaintNode]
    world.answer_all()
    show_taint(world)
    assert claim_of(world).state == "draining"
    assert world.launches() == []


# ── D-17 to D-21 ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_d17_d26_a_loop_that_does_not_run_says_nothing() -> None:
    """The reference tells after 15 min that a method was not begun, and looks at all anew every 5 min."""
    world = in_service()
    world.after(60_000)
    before = world.store.last_position()
    for _ in range(4 * 60):
        world.after(60_000)
    assert world.store.last_position() == before
    due = world.runtime.next_due()
    assert due is not None
    assert due == claim_of(world).created + (claim_of(world).expire_after or 0)


def test_d19_a_claim_without_a_provider_id_holds_up_nothing() -> None:
    """The reference makes no disruption decision at all then."""
    world = half_empty()
    world.see(Observation(pool("other", taints=(Taint("team", "NoSchedule", "other"),))))
    world.pending("z", tolerations=(Toleration("team", "Exists"),), node_selector={lbl.NODEPOOL: "other"})
    world.after(1_000)
    world.after(9_000)
    assert sorted(claim.state for claim in world.runtime.state.facts.claims.values())[-1] == REQUESTED
    (move,) = passes(world)[-1].proposed
    assert move.why == "underutilized"


@pytest.mark.parametrize("code", ["409", "500"])
def test_d21_a_write_of_the_clean_up_that_is_refused_is_tried_again_and_holds_up_no_pass(code: str) -> None:
    world = in_service()
    world.after(60_000)
    show_taint(world)
    for pause in (1_000, 2_000, 4_000, 8_000):
        ((ref, order),) = world.intents
        assert isinstance(order, UntaintNode)
        world.see(Observation(EffectAnswered(ref, False, code)))
        assert world.after(pause - 1) == []
        assert [type(intent) for intent in world.after(1)] == [UntaintNode]
    ((ref, _),) = world.intents
    before = len(passes(world))
    world.see(Observation(EffectAnswered(ref, False, code)), Observation(pool(weight=3)))
    assert world.after(15_999) == []
    assert len(passes(world)) == before + 1


# ── D-23 to D-26 ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_d23_no_budget_is_asked_of_where_there_is_no_candidate() -> None:
    closed = (node_pool(budgets=(Budget("0"),)),)
    annotated = node("b", "small", pod("y"), annotations={lbl.DO_NOT_DISRUPT: "true"})
    given = cluster(node("a", "small", pod("x"), consolidatable=False), annotated, pools=closed)
    assert {name: why.code for name, why in choose_commands(given).kept.items()} == {
        "a": "not-consolidatable",
        "b": "do-not-disrupt",
    }
    given = cluster(node("a", "small", pod("x")), annotated, pools=closed)
    assert {name: why.code for name, why in choose_commands(given).kept.items()} == {
        "a": "budget",
        "b": "do-not-disrupt",
    }


def test_d23_what_a_pass_finds_to_do_starts_together() -> None:
    """Each as a decision of its own (D-98), in one turn."""
    world = two_nodes(consolidation_policy="WhenEmpty")
    for name in "ab":
        world.gone(name)
    world.after(10_000)
    assert len(passes(world)[-1].proposed) == 2
    orders = world.after(15_000)
    assert [type(order) for order in orders] == [TaintNode, TaintNode]
    assert [step.step for step in steps(world)] == ["started", "started"]
    assert len({entry.at for entry in world.store.entries if isinstance(entry.payload, Tainted)}) == 1


def test_d24_a_pass_does_not_wait_for_the_second_look_of_another() -> None:
    world = half_empty()
    world.after(10_000)
    count = len(passes(world))
    world.see(Observation(pool(weight=2)))
    world.after(10_000)
    assert len(passes(world)) == count + 1
    assert steps(world) == []
    world.after(5_000)
    assert [step.step for step in steps(world)] == ["started"]


def test_d25_a_node_is_looked_at_in_time_to_go_as_soon_as_it_is_consolidatable() -> None:
    """With the reference's memos it may wait five minutes."""
    world = half_empty(consolidate_after=3 * 60_000)
    world.after(11_000)
    assert claim_of(world).verdict == "not-consolidatable"
    at = claim_of(world).last_pod_event + 3 * 60_000 - 15_000
    assert world.runtime.next_due() == at
    world.after(at - 1 - world.now)
    count = len(passes(world))
    world.after(1)
    assert len(passes(world)) == count + 1
    assert [move.why for move in passes(world)[-1].proposed] == ["underutilized"]
    assert world.after(14_999) == []
    assert world.after(1) != []
