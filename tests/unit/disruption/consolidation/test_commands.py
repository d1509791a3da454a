"""What nodes are replaced by, and which of them together (D-59…D-61, D-67…D-83, D-87…D-104, D-108…D-112; worked cases
W-1, W-2, W-32…W-60)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.consolidation.balanced_policy import Totals, approves, pool_totals, score
from kerf.engine.disruption.consolidation.commands import Command, decide
from kerf.engine.disruption.consolidation.karpenter_methods import emptiness, interleaved, multi_node, single_node
from kerf.engine.disruption.eligibility import Candidate, consolidation, find_candidates, judge_node
from kerf.engine.disruption.moves.validation import still_empty, still_valid
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.reasons import Reason
from tests.support.scenarios.clusters import NOW, capacity, cluster, node, pending, pod, pool, price, sized

ANY_KIND = RequirementSpec(lbl.CAPACITY_TYPE, "In", ("on-demand", "spot"))
BOTH = pool(requirements=(ANY_KIND,))


def candidates(given: Cluster, *names: str) -> list[Candidate]:
    found = [judge_node(cluster_node, given) for cluster_node in given.nodes if cluster_node.name in names]
    assert all(isinstance(candidate, Candidate) for candidate in found)
    return [candidate for candidate in found if isinstance(candidate, Candidate)]


def decided(given: Cluster, *names: str) -> Command | Reason:
    return decide(Simulator(given), candidates(given, *names))


def command(given: Cluster, *names: str) -> Command:
    found = decided(given, *names)
    assert isinstance(found, Command), found
    return found


def code(given: Cluster, *names: str) -> str:
    found = decided(given, *names)
    assert isinstance(found, Reason), found
    return found.code


def options(found: Command) -> tuple[str, ...]:
    (new,) = found.replacements
    return new.instance_types


# ── replace or delete ──────────────────────────────────────────────────────────────────────────────────────────


def test_d98_a_node_whose_pods_fit_elsewhere_is_deleted() -> None:
    found = command(cluster(node("n1", "small", pod("a")), node("n2", "large", pod("b"))), "n1")
    assert (found.decision, found.savings) == ("delete", price("small"))
    assert [(placement.node, placement.pods) for placement in found.placements] == [("n2", ("uid-a",))]


def test_a_node_too_large_is_replaced_by_a_cheaper_one() -> None:
    found = command(cluster(node("n1", "large", pod("a"))), "n1")
    assert options(found) == ("small", "medium")
    assert found.savings == pytest.approx(price("large") - price("small"))
    assert found.replacements[0].requirements.get(lbl.CAPACITY_TYPE).values == frozenset(["on-demand"])


def test_w40_where_both_are_allowed_the_replacement_is_spot() -> None:
    (new,) = command(cluster(node("n1", "large", pod("a")), pools=(BOTH,)), "n1").replacements
    assert new.requirements.get(lbl.CAPACITY_TYPE).values == frozenset(["spot"])
    assert (new.capacity_types, new.price) == (("spot",), price("small", "spot"))


def test_d98_nothing_is_replaced_by_what_costs_as_much() -> None:
    assert code(cluster(node("n1", "small", pod("a"))), "n1") == "nothing-cheaper"


def test_d98_a_node_is_not_replaced_for_less_than_a_cent_a_year() -> None:
    """Found by a simulation seed: pods went from reserved node to reserved node, of prices of a ten-millionth."""
    cheap = Catalogue((sized("large", 4_000, 2e-8), sized("medium", 4_000, 1e-8)))
    assert code(cluster(node("n1", "large", pod("a")), catalogue=cheap), "n1") == "nothing-cheaper"
    dear = Catalogue((sized("large", 4_000, 2e-5), sized("medium", 4_000, 1e-5)))
    assert options(command(cluster(node("n1", "large", pod("a")), catalogue=dear), "n1")) == ("medium",)


def test_w43_two_new_nodes_are_too_many() -> None:
    apart = [pod("a", 5_000), pod("b", 1_500)]
    given = replace(node("n1", "large", *apart), place=replace(node("n1", "large").place, available={}))
    found = decided(cluster(given, catalogue=Catalogue((sized("medium", 4_000, 0.1), sized("six", 6_000, 0.2)))), "n1")
    assert isinstance(found, Reason)
    assert (found.code, found.params["count"]) == ("several-replacements", 2)


def test_d96_a_pod_that_moves_and_has_no_place_keeps_its_node() -> None:
    given = cluster(node("n1", "huge", pod("a", 9_000)))
    assert code(given, "n1") == "no-place"


def test_w46_w47_pending_pods_are_counted_and_never_block() -> None:
    lone = node("n1", "large", pod("a"))
    assert code(cluster(lone, pending=(pending("p", 7_400),)), "n1") == "nothing-cheaper"
    found = command(cluster(lone, pending=(pending("p", 99_000),)), "n1")
    assert options(found) == ("small", "medium")


def test_w52_pods_of_deleting_nodes_are_placed_too_and_block_if_they_cannot() -> None:
    lone, spare = node("n1", "small", pod("a")), node("n2", "large", pod("b", 7_000))
    assert command(cluster(lone, spare), "n1").decision == "delete"
    going = node("gone", "large", pod("c", 600), marked=True)
    assert code(cluster(lone, spare, going), "n1") == "nothing-cheaper"
    stuck = node("gone", "huge", pod("c", 9_000), marked=True)
    assert code(cluster(lone, spare, stuck), "n1") == "no-place"


def test_w44_a_node_that_settles_takes_no_pods_that_move() -> None:
    settled = pool(consolidate_after=300_000)
    quiet: dict[str, Any] = {"last_pod_event": NOW - 60_000, "consolidatable": False}
    lone, spare = node("n1", "small", pod("a")), node("n2", "large", pod("b"), **quiet)
    assert code(cluster(lone, spare, pools=(settled,)), "n1") == "nothing-cheaper"
    for other in (pool(), pool(consolidate_after=None), pool(consolidate_after=59_000)):
        assert command(cluster(lone, spare, pools=(other,)), "n1").decision == "delete"
    waiting = cluster(node("n1", "small"), spare, pools=(settled,), pending=(pending("p"),))
    outcome = Simulator(waiting).without(["n1"])
    assert [(placement.node, placement.pods) for placement in outcome.placements] == [("n2", ("uid-p",))]


def test_w45_only_pods_of_deleting_nodes_may_wait_for_a_node_that_is_not_ready() -> None:
    new = node("n2", "large", initialized=False)
    assert code(cluster(node("n1", "small", pod("a")), new), "n1") == "no-place"
    given = cluster(node("n1", "small"), new, node("gone", "small", pod("a"), marked=True))
    assert Simulator(given).without(["n1"]).failure is None


def test_w39_the_dearest_zone_of_the_first_capacity_type_is_what_a_launch_may_cost() -> None:
    zones = tuple(Offering(zone, "spot", cost) for zone, cost in (("a", 1.0), ("b", 0.2), ("c", 0.4)))
    spotty = InstanceType("t", capacity(2_000), offerings=zones)
    old = InstanceType("old", capacity(4_000), offerings=(Offering("a", "on-demand", 0.5),))
    lone = node("n1", "old", pod("a"))
    assert code(cluster(lone, pools=(BOTH,), catalogue=Catalogue((spotty, old))), "n1") == "nothing-cheaper"
    cheap = replace(spotty, offerings=tuple(replace(zone, price=zone.price / 3) for zone in zones))
    assert options(command(cluster(lone, pools=(BOTH,), catalogue=Catalogue((cheap, old))), "n1")) == ("t",)


def test_d101_a_node_of_unknown_price_is_deleted_but_never_replaced() -> None:
    unknown = node("n1", "large", pod("a"), labels={lbl.ZONE: "z"})
    assert code(cluster(unknown), "n1") == "nothing-cheaper"
    assert command(cluster(unknown, node("n2", "large")), "n1").decision == "delete"


def test_d91_limits_count_the_nodes_that_stay() -> None:
    lone = node("n1", "large", pod("a"))
    assert options(command(cluster(lone, pools=(pool(limits={"cpu": 8_000}),)), "n1")) == ("small", "medium")
    kept = node("n2", "large", pod("b", 8_000))
    assert code(cluster(lone, kept, pools=(pool(limits={"cpu": 9_000}),)), "n1") == "no-place"


# ── spot ───────────────────────────────────────────────────────────────────────────────────────────────────────


def many(count: int) -> Catalogue:
    """One dear type, and so many cheaper ones."""
    return Catalogue((sized("dear", 4_000, 9.0), *(sized(f"t{n:02}", 2_000, 1 + n / 100) for n in range(count))))


@pytest.mark.parametrize(
    ("count", "gate", "expected"), [(1, False, "spot-to-spot-off"), (1, True, "too-few-spot-options")]
)
def test_w37_one_spot_node_needs_the_gate_and_fifteen_options(count: int, gate: bool, expected: str) -> None:
    given = cluster(node("n1", "dear", pod("a"), kind="spot"), pools=(BOTH,), catalogue=many(1), spot_to_spot=gate)
    assert code(given, "n1") == expected


@pytest.mark.parametrize(("least", "count"), [(None, 15), (16, 16), (10, 15)])
def test_w37_w38_the_options_are_cut_to_fifteen_or_to_min_values(least: int | None, count: int) -> None:
    kinds = RequirementSpec(lbl.INSTANCE_TYPE, "Exists", (), least)
    spot = pool(requirements=(ANY_KIND, kinds))
    lone = node("n1", "dear", pod("a"), kind="spot")
    found = command(cluster(lone, pools=(spot,), catalogue=many(18), spot_to_spot=True), "n1")
    assert options(found) == tuple(f"t{n:02}" for n in range(count))


def test_w38_min_values_that_only_the_dear_types_meet_keep_the_node() -> None:
    kinds = RequirementSpec(lbl.INSTANCE_TYPE, "Exists", (), 16)
    given = cluster(
        node("n1", "dear", pod("a"), kind="spot"),
        pools=(pool(requirements=(ANY_KIND, kinds)),),
        catalogue=many(15),
        spot_to_spot=True,
    )
    assert code(given, "n1") == "min-values"


def test_w36_several_spot_nodes_need_no_fifteen_options() -> None:
    nodes = [node(f"n{n}", "large", pod(f"p{n}", 3_000 if n else 500), kind="spot") for n in range(2)]
    given = cluster(*nodes, pools=(BOTH,), spot_to_spot=True)
    assert options(command(given, "n0", "n1")) == ("medium", "large")


# ── the methods ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("share", "count"), [("30%", 3), ("100%", 10), ("0%", 0)])
def test_w1_emptiness_takes_what_the_budget_leaves(share: str, count: int) -> None:
    nodes = [node(f"n{n}", "small") for n in range(10)]
    found = emptiness(cluster(*nodes, pools=(pool(budgets=(Budget(share),)),))).command
    assert (len(found.candidates) if found else 0) == count


def test_w2_emptiness_takes_from_every_pool_at_once() -> None:
    pools = tuple(pool(f"p{n}", budgets=(Budget("50%"),)) for n in range(10))
    nodes = [node(f"n{n}-{m}", "small", pool=f"p{n}") for n in range(10) for m in range(3)]
    found = emptiness(cluster(*nodes, pools=pools)).command
    assert found is not None
    assert len(found.candidates) == 20
    assert (found.decision, found.reason) == ("delete", DisruptionReason.EMPTY)


def test_w32_two_nodes_of_the_cheapest_type_become_one_by_deletion() -> None:
    given = cluster(node("n1", "small", pod("a")), node("n2", "small", pod("b"), pod("c")))
    assert multi_node(given, Simulator(given)).command is None
    found = single_node(given, Simulator(given)).command
    assert found is not None
    assert (found.decision, found.names) == ("delete", ("n1",))


def test_w33_w34_several_nodes_are_not_replaced_by_a_type_that_one_of_them_is() -> None:
    nodes = (node("n1", "medium", pod("a")), node("n2", "medium", pod("b")))
    given = cluster(*nodes, node("n3", "small", pod("c", 1_900)))
    found = multi_node(given, Simulator(given)).command
    assert found is not None
    assert options(found) == ("small",)
    full = (node("n1", "large", pod("a", 800)), node("n2", "small", pod("b", 800)))
    assert multi_node(cluster(*full), Simulator(cluster(*full))).command is None


def test_w35_three_dear_nodes_become_one() -> None:
    given = cluster(*(node(f"n{n}", "large", pod(f"p{n}", 600)) for n in range(3)))
    found = multi_node(given, Simulator(given)).command
    assert found is not None
    assert (found.decision, len(found.candidates), options(found)) == ("replace", 3, ("small", "medium"))
    assert found.savings == pytest.approx(3 * price("large") - price("small"))


def test_d68_the_search_stays_within_the_budget() -> None:
    nodes = [node(f"n{n}", "large", pod(f"p{n}", 600)) for n in range(3)]
    given = cluster(*nodes, pools=(pool(budgets=(Budget("2"),)),))
    found = multi_node(given, Simulator(given)).command
    assert found is not None
    assert len(found.candidates) == 2


def test_d75_pools_take_turns() -> None:
    nodes = [node("a1", "large", pod("p1")), node("a2", "large", pod("p2")), node("b1", "small", pod("p3"), pool="b")]
    given = cluster(*nodes, pools=(pool(), pool("b")))
    turns = interleaved(find_candidates(given, consolidation).chosen)
    assert [turn.name for turn in turns] == ["b1", "a1", "a2"]


# ── Balanced ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("totals", "savings", "disruption", "expected"),
    [
        (Totals(58.08, 90), 7.26, 4, 2.8125),
        (Totals(58.08, 90), 4.84, 5, 1.5),
        (Totals(58.08, 90), 2.42, 9, 0.41667),
        (Totals(48.40, 90), 2.42, 9, 0.5),
        (Totals(58.08, 117), 4.84, 32, 0.30469),
        (Totals(2, 3), 2, 3, 1.0),
        (Totals(2, 3), 0, 3, 0.0),
        (Totals(0, 3), 1, 3, 0.0),
        (Totals(2, 0), 1, 3, 0.0),
        (None, 1, 3, 0.0),
        (Totals(2, 3), 1, 0, math.inf),
    ],
)
def test_d80_w53_to_w59_the_score(totals: Totals | None, savings: float, disruption: float, expected: float) -> None:
    assert score(totals, savings, disruption) == pytest.approx(expected, abs=1e-5)


def test_w60_one_balanced_pool_that_loses_vetoes_the_command() -> None:
    weighed = pool("b", consolidation_policy="Balanced")
    given = cluster(
        node("n1", "large", pod("a")),
        node("n2", "small", *(pod(f"p{n}", 10) for n in range(9)), pool="b"),
        node("n3", "large", pod("c", 7_900), pool="b"),
        pools=(pool(), weighed),
    )
    totals = pool_totals(given, find_candidates(given, consolidation).eligible)
    assert totals["b"].cost == pytest.approx(price("large") + price("small"))
    assert totals["b"].disruption == 12.0
    both = Command(
        DisruptionReason.UNDERUTILIZED, tuple(candidates(given, "n1", "n2")), savings=price("large") + price("small")
    )
    assert not approves(both, totals)
    assert approves(replace(both, candidates=tuple(candidates(given, "n1"))), totals)


# ── validation ─────────────────────────────────────────────────────────────────────────────────────────────────


def again(found: Command, *nodes: ClusterNode, **changes: Any) -> str:
    why = still_valid(found, Simulator(cluster(*nodes, **changes)))
    return "" if why is None else why.code


def test_d109_w25_emptiness_goes_on_with_the_nodes_that_are_still_empty() -> None:
    nodes = [node(f"n{n}", "small") for n in range(5)]
    found = emptiness(cluster(*nodes)).command
    assert found is not None
    held = [node("n0", "small", pod("a")), replace(nodes[1], annotations={lbl.DO_NOT_DISRUPT: "true"}), *nodes[2:]]
    kept = still_empty(found, cluster(*held))
    assert isinstance(kept, Command)
    assert kept.names == ("n2", "n3", "n4")
    gone = still_empty(found, cluster(*(replace(cluster_node, nominated=True) for cluster_node in nodes)))
    assert isinstance(gone, Reason)
    assert gone.code == "churn"


def test_d110_w49_w50_the_other_methods_go_on_whole_or_not_at_all() -> None:
    lone, spare = node("n1", "small", pod("a")), node("n2", "large", pod("b"))
    found = command(cluster(lone, spare), "n1")
    assert again(found, lone, spare) == ""
    assert again(found, replace(lone, nominated=True), spare) == "churn"
    assert again(found, lone, spare, pools=(pool(budgets=(Budget("0"),)),)) == "budget"
    assert again(found, lone, node("n2", "large", pod("b", 7_900))) == "scheduling"
    narrow = command(cluster(node("n1", "large", pod("a", 1_000))), "n1")
    assert again(narrow, node("n1", "large", pod("a", 500))) == ""
    assert again(narrow, node("n1", "large", pod("a", 2_100))) == "scheduling"


def test_d40_equal_clusters_decide_equally_in_any_order() -> None:
    nodes = [node(f"n{n}", "large", pod(f"p{n}", 600)) for n in range(4)]
    one, other = cluster(*nodes), cluster(*reversed(nodes))
    for method in (multi_node, single_node):
        first, second = method(one, Simulator(one)).command, method(other, Simulator(other)).command
        assert first is not None
        assert second is not None
        assert (first.names, options(first) if first.replacements else ()) == (
            second.names,
            options(second) if second.replacements else (),
        )
