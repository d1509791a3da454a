"""D-98: what nodes would be replaced by is asked of each NodePool of equal weight, not only of the last one by name
(S-63)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.consolidation.commands import Command, decide, decide_for_kerf
from kerf.engine.disruption.consolidation.karpenter_methods import single_node
from kerf.engine.disruption.consolidation.replacement_bound import Bound
from kerf.engine.disruption.consolidation.sequential_search import choose_commands
from kerf.engine.disruption.eligibility import consolidation, find_candidates
from kerf.engine.disruption.moves.due_moves import validate_beside
from kerf.engine.disruption.moves.proposal import move_of
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.replay.what_if.node import consolidation as ask_consolidation
from kerf.replay.what_if.node import explore_changes
from tests.support.scenarios.clusters import CATALOGUE, ON_DEMAND, cluster, node, pod, pool, price, sized


def with_dear_spot(times: float) -> Catalogue:
    """Spot costs so many times as much as on demand."""
    found = []
    for each in CATALOGUE.types:
        demand, spot = each.offerings
        found.append(replace(each, offerings=(demand, replace(spot, price=times * demand.price))))
    return Catalogue(tuple(found))


def of_kind(name: str, *kinds: str, **changes: Any) -> NodePool:
    return pool(name, requirements=(RequirementSpec(CAPACITY_TYPE, "In", kinds),), **changes)


DEMAND, SPOT = of_kind("demand", "on-demand"), of_kind("spot", "spot")


def dear(*nodes: ClusterNode, pools: tuple[NodePool, ...] = (DEMAND, SPOT), **changes: Any) -> Cluster:
    """By default one spot node that its pod fills."""
    lone = node("n", "small", pod("p", 1_400), kind="spot", pool="spot")
    return cluster(*(nodes or (lone,)), pools=pools, catalogue=changes.pop("catalogue", with_dear_spot(5)), **changes)


def only(given: Cluster) -> Command:
    (command,) = choose_commands(given).commands
    return command


def why(given: Cluster) -> str:
    found = choose_commands(given)
    assert not found.commands
    return found.kept["n"].code


def asked(given: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The NodePools that simulations had first, "" for those that are anyway."""
    made, simulate = [], Simulator._simulate

    def noted(self: Simulator, *how: Any) -> Any:
        made.append(how[-1])
        return simulate(self, *how)

    monkeypatch.setattr(Simulator, "_simulate", noted)
    choose_commands(given)
    return made


def test_s63_d98_nodes_are_replaced_by_the_cheapest_of_nodepools_of_equal_weight() -> None:
    command = only(dear())
    (new,) = command.replacements
    assert (new.claim.node_pool, new.instance_types[0], new.capacity_types) == ("demand", "small", ("on-demand",))
    assert command.savings == pytest.approx(5 * price("small") - price("small"))


def test_d98_a_cheaper_first_answer_is_compared_with_the_others() -> None:
    """Else the pods would move twice: to spot at $0.15, and then from there."""
    lone = node("n", "large", pod("p", 1_400), pool="demand")
    (new,) = only(dear(lone, catalogue=with_dear_spot(1.5))).replacements
    assert (new.claim.node_pool, new.price) == ("demand", price("small"))


def test_d70_several_nodes_are_replaced_together_by_one_of_another_nodepool() -> None:
    nodes = [node(f"n{n}", "medium", pod(f"p{n}", 1_900), pod(f"q{n}", 900), kind="spot", pool="spot") for n in (1, 2)]
    command = only(dear(*nodes))
    assert (command.names, command.replacements[0].claim.node_pool) == (("n1", "n2"), "demand")


def test_s61_a_nodepool_of_less_weight_is_no_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dear(pools=(DEMAND, replace(SPOT, weight=1)))
    assert why(given) == "spot-to-spot-off"
    assert set(asked(given, monkeypatch)) == {""}
    assert only(dear(pools=(replace(DEMAND, weight=1), replace(SPOT, weight=1)))).replacements


def test_where_no_nodepools_are_of_equal_weight_nothing_more_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    half = node("n", "large", pod("p", 1_400), kind="spot", pool="spot")
    assert set(asked(dear(half, pools=(SPOT,), spot_to_spot=True), monkeypatch)) == {""}


def test_at_most_four_nodepools_are_asked_besides_and_none_without_a_cheaper_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = RequirementSpec(INSTANCE_TYPE, "In", ("large",))
    dearest = replace(SPOT, name="r", requirements=(*SPOT.requirements, large))
    others = tuple(replace(DEMAND, name=f"demand-{n}", limits={"cpu": 0}) for n in range(6))
    assert asked(dear(pools=(*others, SPOT)), monkeypatch) == ["", *(f"demand-{n}" for n in (5, 4, 3, 2))]
    assert "r" not in asked(dear(pools=(DEMAND, dearest, SPOT)), monkeypatch)


# ── what holds for the first answer holds for the others ───────────────────────────────────────────────────────────


TWO_TYPES = RequirementSpec(INSTANCE_TYPE, "Exists", (), min_values=2)


@pytest.mark.parametrize(
    "demand",
    [
        replace(DEMAND, limits={"cpu": 1_000}),  # S-68
        replace(DEMAND, ready=False),  # S-61
        replace(DEMAND, requirements=(*DEMAND.requirements, TWO_TYPES)),  # S-108: only small ones are cheaper
        of_kind("demand", "spot"),  # D-102
    ],
)
def test_d98_limits_min_values_and_spot_to_spot_hold_for_another_nodepool(demand: NodePool) -> None:
    """The first answer says why the node stays."""
    dearer = with_dear_spot(1.5)
    assert only(dear(catalogue=dearer)).replacements
    assert why(dear(pools=(demand, SPOT), catalogue=dearer)) == "spot-to-spot-off"


def test_d102_on_demand_is_no_detour_to_a_cheaper_spot_node() -> None:
    """Small nodes cost $0.05 on spot, which may not replace this one ($0.20), and $0.10 on demand, which spot would
    replace next."""
    half = node("n", "large", pod("p", 1_400), kind="spot", pool="spot")
    assert why(dear(half, catalogue=CATALOGUE)) == "spot-to-spot-off"
    assert why(dear(half, catalogue=CATALOGUE, spot_to_spot=True)) == "too-few-spot-options"
    assert only(dear(half, catalogue=with_dear_spot(1.1))).replacements[0].claim.node_pool == "demand"


def test_d102_fifteen_types_are_asked_of_another_nodepool_too() -> None:
    few = RequirementSpec(INSTANCE_TYPE, "In", ("dear",))
    types = (sized("dear", 2_000, 4.0), *(sized(f"t{n:02}", 2_000, 1.0 + n / 100) for n in range(15)))
    at = node("n", "dear", pod("p", 1_400), kind="spot", pool="spot")
    at = replace(at, place=replace(at.place, available={"cpu": 600, "memory": 1 << 32, "pods": 9}))
    pools = of_kind("any", "spot"), replace(SPOT, requirements=(*SPOT.requirements, few))
    new = only(dear(at, pools=pools, catalogue=Catalogue(types), spot_to_spot=True)).replacements[0]
    assert (new.claim.node_pool, len(new.instance_types)) == ("any", 15)
    fewer = Catalogue(types[:-1])
    assert why(dear(at, pools=pools, catalogue=fewer, spot_to_spot=True)) == "nothing-cheaper"


def test_d80_a_balanced_nodepool_scores_what_another_one_launches() -> None:
    """It saves $0.10 of $0.60, and moves three pods of four."""
    costly = [pod(f"p{n}", 650, deletion_cost=134_217_728) for n in range(3)]
    nodes = node("n", "medium", *costly, pool="demand"), node("m", "large", pod("x", 7_900), pool="demand")
    assert only(dear(*nodes)).replacements[0].claim.node_pool == "demand"
    assert why(dear(*nodes, pools=(replace(DEMAND, consolidation_policy="Balanced"), SPOT))) == "not-worth-it"


def test_d98_step_8_what_another_nodepool_launches_is_on_offer() -> None:
    """It admits spot, of which there is none: it costs what on demand costs, not nothing."""
    medium = RequirementSpec(INSTANCE_TYPE, "In", ("medium",))
    pools = of_kind("either", "on-demand", "spot"), replace(SPOT, requirements=(ON_DEMAND, medium))
    given = dear(node("n", "medium", pod("p", 1_400), pool="spot"), pools=pools)
    given = replace(given, base=replace(given.base, unavailable=frozenset([("spot", "", "")])))
    new = only(given).replacements[0]
    assert (new.claim.node_pool, new.price, new.capacity_types) == ("either", price("small"), ("on-demand",))


def test_d74_several_nodes_are_not_replaced_by_one_of_their_own_type_of_another_nodepool() -> None:
    given = dear(*(node(f"n{n}", "medium", pod(f"p{n}", 1_400), pool="demand") for n in (1, 2)))
    simulator = Simulator(given, most_claims=1)
    both = find_candidates(given, consolidation).chosen
    assert [new.node_pool for new in simulator.without(["n1", "n2"], first_pool="demand").claims] == ["demand"]
    assert isinstance(decide_for_kerf(simulator, both, Bound(simulator).cheaper), Reason)


def test_what_karpenter_would_do_is_asked_of_the_first_nodepool_alone() -> None:
    given = dear()
    (candidate,) = find_candidates(given, consolidation).chosen
    assert isinstance(decide(Simulator(given), [candidate]), Reason)
    assert single_node(given, Simulator(given)).command is None


# ── the second look ────────────────────────────────────────────────────────────────────────────────────────────────


def test_d110_the_second_look_asks_with_the_nodepool_of_the_replacement_first() -> None:
    given = dear()
    move = move_of(only(given))
    again = validate_beside(move, given, [], [])
    assert isinstance(again, Move)
    assert [new.node_pool for new in again.replacements] == ["demand"]
    cheap = node("n", "small", pod("p", 1_400), pod("q", 500), kind="spot", pool="spot")
    assert isinstance(validate_beside(move, dear(cheap), [], []), Move)


def test_d110_a_replacement_is_launched_by_the_nodepool_that_was_decided_or_not_at_all() -> None:
    """The spot NodePool would launch the same types, at five times the price."""
    move = move_of(only(dear()))
    for changed in (replace(DEMAND, limits={"cpu": 1_000}), replace(DEMAND, ready=False)):
        result = validate_beside(move, dear(pools=(changed, SPOT)), [], [])
        assert isinstance(result, Reason)
        assert result.params == {"why": "other-nodepool"}


# ── explanations ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_explain_names_the_cheapest_new_node_of_nodepools_of_equal_weight() -> None:
    lone = node("n", "small", pod("p", 1_400), pool="demand")
    found = explore_changes(dear(lone), "claim-n", ask_consolidation, DisruptionReason.UNDERUTILIZED)
    assert found.need is not None
    assert (found.need.instance_type, found.need.price) == ("small", price("small"))
    assert found.alone is None


def test_explain_names_no_node_of_another_nodepool_where_consolidation_does_not_ask_it() -> None:
    """The last NodePool by name needs two nodes, and then no other one is asked."""
    sizes = (RequirementSpec(INSTANCE_TYPE, "In", (size,)) for size in ("medium", "small"))
    pools = tuple(replace(DEMAND, name=n, requirements=(ON_DEMAND, size)) for n, size in zip("ab", sizes, strict=True))
    given = dear(node("n", "large", pod("p", 1_400), pod("q", 1_400), pool="a"), pools=pools)
    assert why(given) == "several-replacements"
    need = explore_changes(given, "claim-n", ask_consolidation, DisruptionReason.UNDERUTILIZED).need
    assert need is not None
    assert (need.nodes, need.instance_type) == (2, "")


def test_explain_says_that_a_node_would_go_for_one_of_another_nodepool() -> None:
    held = node("n", "small", pod("p", 1_400, do_not_disrupt="true"), kind="spot", pool="spot")
    found = explore_changes(dear(held), "claim-n", ask_consolidation, DisruptionReason.UNDERUTILIZED)
    assert found.goes is not None
    assert (found.goes.replacements, found.goes.price) == (("small",), price("small"))
