"""Worked cases of docs/rules/disruption.md section 14 that other modules do not have, by their numbers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import budget_usage
from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.consolidation.commands import Command, decide
from kerf.engine.disruption.consolidation.sequential_search import choose_commands
from kerf.engine.disruption.drift.replacement import longest_drifted_first, replace_drifted
from kerf.engine.disruption.eligibility import find_candidates, judge_nodes
from kerf.engine.disruption.forced.forced_disruption import expired
from kerf.engine.disruption.forced.node_repair import Policy, first_due, unhealthy_limit
from kerf.engine.disruption.moves.due_moves import replacement_time_limit
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.karpenter.nodepools import Budget, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node, NodeCondition
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Move
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State, Underway
from tests.support.scenarios.clusters import CATALOGUE, NOW, cluster, node, pod, pool

ANY = RequirementSpec(lbl.CAPACITY_TYPE, "In", ("on-demand", "spot", "reserved"))
HOURS = 3_600_000


def drifted(name: str, *pods: Any, size: str = "medium", ago: int = HOURS, **changes: Any) -> ClusterNode:
    return node(name, size, *pods, drifted_since=NOW - ago, **changes)


def moved(given: Cluster) -> tuple[list[tuple[str, ...]], dict[str, str]]:
    """The claims of each move, and why others stay."""
    refused: dict[str, Reason] = {}
    moves = replace_drifted(given, refused)
    return [move.claims for move in moves], {name: reason.code for name, reason in refused.items()}


# ── drift ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_w9_d50_drifted_nodes_go_as_far_as_the_budget_lets_them() -> None:
    """All of the share in one pass, where the reference takes one a pass."""
    nodes = [drifted(f"n{i}", pod(f"p{i}", 3_900)) for i in range(10)]
    moves, refused = moved(cluster(*nodes, pools=(pool(budgets=(Budget("30%"),)),)))
    assert len(moves) == 3
    assert set(refused.values()) == {"budget"}
    assert len(refused) == 7


def test_w18_d31_d89_with_a_grace_period_a_protected_pod_is_no_obstacle_and_gets_no_room() -> None:
    held = pod("p", do_not_disrupt="true")
    assert moved(cluster(drifted("n", held)))[0] == []
    refused: dict[str, Reason] = {}
    (move,) = replace_drifted(cluster(drifted("n", held, grace_period=300_000)), refused)
    assert (move.claims, move.replacements, move.placements) == (("claim-n",), (), ())


def test_w27_d64_one_whose_pods_have_no_place_holds_up_nobody() -> None:
    given = cluster(drifted("a", pod("giant", 90_000), ago=2 * HOURS), drifted("b", pod("p")))
    assert moved(given) == ([("claim-b",)], {"a": "no-place"})


def test_w28_d63_without_pods_first_then_by_how_long_they_have_drifted() -> None:
    nodes = (drifted("a", pod("p"), ago=3 * HOURS), drifted("b", pod("q"), ago=2 * HOURS), drifted("c", ago=HOURS))
    found = longest_drifted_first(find_candidates(cluster(*nodes), eligibility.drift, eventual=True).chosen)
    assert [candidate.name for candidate in found] == ["c", "a", "b"]


def test_w29_d65_one_drifted_node_is_replaced_by_as_many_as_its_pods_need() -> None:
    given = cluster(drifted("n", *(pod(f"p{i}", 7_900) for i in range(3)), size="large"))
    refused: dict[str, Reason] = {}
    (move,) = replace_drifted(given, refused)
    assert len(move.replacements) == 3
    assert sorted(uid for new in move.replacements for uid in new.pods) == ["uid-p0", "uid-p1", "uid-p2"]


def test_w26_d22_an_empty_node_that_has_drifted_goes_as_drifted_if_the_budgets_for_that_let_it() -> None:
    """Unlike the reference, as empty only where they do not (docs/differences-disruption.md)."""
    assert moved(cluster(drifted("n"))) == ([("claim-n",)], {})
    held = cluster(drifted("n"), pools=(pool(budgets=(Budget("0", reasons=("Drifted",)),)),))
    assert moved(held) == ([], {"n": "budget"})
    assert [command.names for command in choose_commands(held).commands] == [("n",)]


def test_w31_d62_what_has_not_drifted_is_no_candidate() -> None:
    assert moved(cluster(node("n", "medium", pod("p")))) == ([], {})


# ── who is a candidate, and what counts ──────────────────────────────────────────────────────────────────────────────


def test_w24_d59_a_node_that_holds_room_for_buffers_is_not_empty() -> None:
    found = find_candidates(cluster(node("n", buffers=1)), eligibility.emptiness)
    assert found.chosen == ()
    assert found.excluded["n"] == Reason("holds-buffers", {"buffers": 1})
    assert [candidate.name for candidate in find_candidates(cluster(node("n")), eligibility.emptiness).chosen] == ["n"]


def test_w51_d29_a_pool_without_instance_types_blocks_its_own_nodes_only() -> None:
    given = cluster(node("a"), node("b", pool="other"), pools=(pool(), pool("other")))
    bare = replace(
        given.base, pools=tuple(replace(p, catalogue="") if p.pool.name == "other" else p for p in given.base.pools)
    )
    found = {judge_node.name: why for judge_node, why in judge_nodes(replace(given, base=bare)).judged}
    assert not isinstance(found["a"], Reason)
    assert isinstance(found["b"], Reason)
    assert found["b"].code == "no-instance-types"


def test_w8_d49_d158_what_is_not_initialized_ending_or_unmanaged_does_not_count() -> None:
    nodes = [node(f"n{i}") for i in range(7)]
    others = [node("new", initialized=False), node("ends", terminating=True), node("foreign", managed=False)]
    used = budget_usage(cluster(*nodes, *others, node("sick", ready=False), node("going", marked=True)))["default"]
    assert (used.total, used.consuming) == (9, 2)


@pytest.mark.parametrize(
    ("candidates", "minutes"), [(1, 10), (100, 10), (10_000, 800 / 60), (40_000, 3_200 / 60), (45_000, 60)]
)
def test_w61_d117_the_more_candidates_the_longer_replacements_may_take(candidates: int, minutes: float) -> None:
    facts = Facts(moves={"1.0": Underway(Move("drifted", ("claim",) * candidates), NOW, started=True)})
    assert replacement_time_limit(State(facts, Blobs(lambda _: b""))) == round(minutes * 60_000)


@pytest.mark.parametrize(("ill", "of", "proceeds"), [(3, 10, False), (2, 10, True), (1, 3, True)])
def test_w84_d135_a_fifth_may_be_ill(ill: int, of: int, proceeds: bool) -> None:
    assert (ill <= unhealthy_limit(of)) is proceeds


# ── reserved capacity ────────────────────────────────────────────────────────────────────────────────────────────────


def reserving(size: str, left: int = 1) -> Catalogue:
    offering = Offering("a", lbl.RESERVED, 1e-8, available=left > 0, reservation_id="cr-1", reservation_capacity=left)
    kinds = tuple(
        replace(
            kind,
            requirements={**kind.requirements, lbl.CAPACITY_TYPE: ("on-demand", "reserved", "spot")},
            offerings=kind.offerings + ((offering,) if kind.name == size else ()),
        )
        for kind in CATALOGUE.types
    )
    return Catalogue(kinds)


def decided(given: Cluster) -> Command | Reason:
    (found,) = find_candidates(given, eligibility.consolidation).chosen
    return decide(Simulator(given), [found])


@pytest.mark.parametrize("kind", ["on-demand", "spot"])
def test_w42_d100_d103_reserved_capacity_replaces_and_needs_no_gate(kind: str) -> None:
    """Of a spot node too: what is pinned to a reservation is not spot to spot."""
    given = cluster(
        node("n", "medium", pod("p", 3_500), kind=kind),
        pools=(pool(requirements=(ANY,)),),
        catalogue=reserving("large"),
    )
    found = decided(given)
    assert isinstance(found, Command)
    (new,) = found.replacements
    assert new.capacity_types == ("reserved",)
    assert new.requirements.get(lbl.RESERVATION_ID).values == {"cr-1"}
    assert found.savings == pytest.approx(0.2 if kind == "on-demand" else 0.1)


def test_w42_what_is_used_up_replaces_nothing() -> None:
    given = cluster(
        node("n", "medium", pod("p", 3_500), kind="spot"),
        pools=(pool(requirements=(ANY,)),),
        catalogue=reserving("large", left=0),
    )
    found = decided(given)
    assert isinstance(found, Reason)
    assert found.code == "spot-to-spot-off"


def test_d90_where_a_pod_would_wait_for_reserved_capacity_a_simulation_uses_none_of_it() -> None:
    given = cluster(
        node("n", "medium", pod("p", 6_000)),
        node("m", "medium", pod("q", 6_000)),
        pools=(pool(requirements=(ANY,)),),
        catalogue=reserving("large"),
    )
    simulator = Simulator(given)
    assert [new.capacity_types for new in simulator.without(["n"]).claims] == [("reserved",)]
    both = simulator.without(["n", "m"])
    assert both.failure is None
    assert len(both.claims) == 2
    assert not any("reserved" in new.capacity_types for new in both.claims)


def test_d53_a_nodepool_of_fixed_size_and_budgets() -> None:
    """D-161: its nodes are candidates of drift alone."""
    fixed: NodePool = pool(replicas=2)
    given = cluster(node("n", "medium", pod("p")), node("m"), pools=(fixed,))
    assert find_candidates(given, eligibility.consolidation).chosen == ()
    assert find_candidates(given, eligibility.emptiness).chosen == ()


# ── repair, expiration ───────────────────────────────────────────────────────────────────────────────────────────────


def test_w85_d134_of_two_conditions_the_one_whose_toleration_ends_first() -> None:
    minute = 60_000
    policies = (Policy("StorageReady", ("False",), 30 * minute), Policy("KernelReady", ("False",), 60 * minute))
    ill = Node(
        "n",
        ready=True,
        conditions=(
            NodeCondition("StorageReady", "False", NOW - 27 * minute),
            NodeCondition("KernelReady", "False", NOW - 10 * minute),
        ),
    )
    found = first_due(ill, policies)
    assert found is not None
    assert (found.type, found.due - NOW) == ("StorageReady", 3 * minute)


def test_w87_d131_it_is_due_at_the_very_moment() -> None:
    claim = NodeClaim("c", created=NOW - 599_000, expire_after=600_000)
    state = State(Facts(), Blobs(lambda _: b""))
    assert expired(claim, state, NOW).due == NOW + 1_000
    assert not expired(claim, state, NOW).remove
    assert expired(claim, state, NOW + 1_000).remove
