"""Nodes of pods that came a short while ago go only for more than these cost (D-98)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.consolidation.joint_search import find_joint_removal
from kerf.engine.disruption.consolidation.rankings import Fleet, fleet_of
from kerf.engine.disruption.consolidation.sequential_search import choose_commands
from kerf.engine.disruption.consolidation.young_pods import SHARE, settled_at, too_soon
from kerf.engine.disruption.disruption_pass import cheapest_commands
from kerf.engine.disruption.eligibility import Candidate, consolidation, find_candidates
from kerf.engine.disruption.moves.due_moves import validate
from kerf.engine.disruption.moves.proposal import move_of
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.projections.prose.reasons import sentence
from kerf.replay.explain.claim import explain_claim
from tests.support.lives import PODS, claim_of, in_service
from tests.support.scenarios.clusters import DAEMON, NOW, cluster, node, pod, pool, price
from tests.support.worlds.disruption import passes

MINUTE = 60_000


def alone(came: int, instance_type: str = "medium") -> Cluster:
    """A cluster of one node whose three pods would do with a small one. It was launched for them; they came at
    `came`."""
    pods = [pod(f"p{number}", created=came) for number in range(3)]
    return replace(cluster(node("crowded", instance_type, *pods, initialized_since=came)), live=True)


def beside(given: Cluster, *pods: Pod) -> Cluster:
    """The cluster with a large node that has these pods."""
    return replace(cluster(*given.nodes, node("full", "large", *pods)), live=True)


def test_d98_pods_that_came_lately_stay_for_now() -> None:
    chosen = choose_commands(alone(NOW - MINUTE))
    why = chosen.kept["crowded"]
    assert chosen.commands == ()
    assert (why.code, why.params["count"]) == ("moved-lately", 3)
    assert sentence(why) == (
        "3 of its pods came less than 10 minutes ago: moving them so soon has to save more than $0.1500/h, and would "
        "save $0.1000/h"
    )


@pytest.mark.parametrize(
    "given",
    [
        alone(NOW - 10 * MINUTE),
        replace(alone(NOW - MINUTE), live=False),
        alone(NOW - MINUTE, instance_type="large"),
        beside(alone(NOW - MINUTE), *(pod(f"q{number}", 500) for number in range(10))),
    ],
    ids=[
        "ten minutes ago",
        "kerf disrupt, as Karpenter does",
        "a node of a quarter of the price will do",
        "they have room elsewhere, and few pods for their node",
    ],
)
def test_d98_other_pods_go(given: Cluster) -> None:
    assert [command.names for command in choose_commands(given).commands] == [("crowded",)]


def test_d98_pods_that_came_lately_stay_also_where_they_have_room_elsewhere() -> None:
    """A scale-in moved 24 of 120 pods a second time, each time to save little."""
    chosen = choose_commands(beside(alone(NOW - MINUTE), pod("q", 5_000)))
    assert chosen.commands == ()
    assert chosen.kept["crowded"].code == "moved-lately"
    assert chosen.kept["crowded"].params["limit"] == pytest.approx(1.5 * 3 * price("large") / 4)


def in_rounds(budget: str, *nodes: ClusterNode) -> Cluster:
    return replace(cluster(*nodes, pools=(pool(budgets=(Budget(budget),)),)), live=True)


def young(name: str, instance_type: str, count: int, cpu: int) -> ClusterNode:
    return node(name, instance_type, *(pod(f"{name}-{number}", cpu, created=NOW - MINUTE) for number in range(count)))


def test_d98_a_set_is_judged_by_what_pods_cost_once_all_of_it_is_gone() -> None:
    """Both when it is chosen and when each of its moves starts. Eight rounds of the budget let 24 of 30 go."""
    given = in_rounds("10%", *(young(f"n{number:02}", "medium", 3, 200) for number in range(30)))
    chosen, waves = cheapest_commands(given, None, {})
    assert len(chosen.commands) == 24
    moves = [move_of(command, waves) for command in chosen.commands]
    for number, move in enumerate(moves):
        assert isinstance(validate(move, given, moves[:number] + moves[number + 1 :]), Move)


def test_d98_a_node_with_many_young_pods_stays_beside_a_set() -> None:
    sparse = [young(f"n{number}", "medium", 1, 600) for number in range(3)]
    staying = node("staying", "large", *(pod(f"s{number}", 100, do_not_disrupt="true") for number in range(10)))
    for count, expected in ((1, None), (12, "moved-lately")):
        crowded = young("crowded", "small", count, 60)
        found = find_joint_removal(in_rounds("1", *sparse, staying, crowded), rounds=8).commands
        assert found is not None
        assert len(found.commands) == (3 if expected else 4)
        why = found.kept.get("crowded")
        assert (why.code if why else None) == expected


def test_d98_a_node_that_is_far_too_large_is_replaced_at_once_in_a_dear_fleet() -> None:
    """Each of four large nodes has one young pod for which a quarter of it would do."""
    given = replace(cluster(*(young(f"n{number}", "large", 1, 1_600) for number in range(4))), live=True)
    fleet, (one, *_) = fleet_of(given), find_candidates(given, consolidation).chosen
    assert too_soon(price("large") - price("medium"), (one,), fleet, NOW) is not None
    assert too_soon(price("large") - price("small"), (one,), fleet, NOW) is None


def test_d110_pods_that_came_since_a_move_was_proposed_withdraw_it() -> None:
    move = Move("underutilized", ("claim-crowded",), savings=price("small"))
    withdrawn = validate(move, alone(NOW - MINUTE), [])
    assert isinstance(withdrawn, Reason)
    assert withdrawn.code == "moved-lately"
    later = validate(move, alone(NOW - 10 * MINUTE), [])
    assert isinstance(later, Reason)
    assert later.code == "scheduling"  # this move names no replacement


def test_d16_a_pass_comes_when_they_are_settled() -> None:
    world = in_service()
    world.after(MINUTE)
    for name in PODS:
        world.gone(name)
    world.pending("x", "y")
    came = world.now
    for name in "xy":
        world.bind(name, "n1")
    world.after(20_000)
    assert claim_of(world).verdict == "moved-lately"
    assert passes(world)[-1].look_at == came + 10 * MINUTE - 15_000
    told = explain_claim(world.store, claim_of(world).name)
    assert [method.due for method in told.methods if method.method == "consolidation"] == [came + 10 * MINUTE]
    world.after(10 * MINUTE - 15_000 - 20_000)
    assert [move.claims for move in passes(world)[-1].proposed] == [(claim_of(world).name,)]


def test_d16_it_comes_also_where_nodes_may_go_only_together() -> None:
    """Each of three pods needs its node, and one large node would do for all. Nothing came after them for hours."""
    given = replace(cluster(*(young(f"n{number}", "medium", 1, 2_400) for number in range(3))), live=True)
    chosen = choose_commands(given)
    assert chosen.commands == ()
    assert {why.code for why in chosen.kept.values()} == {"nothing-cheaper"}
    assert chosen.settled_at == NOW + 9 * MINUTE
    later = choose_commands(replace(given, now=chosen.settled_at))
    assert [len(command.names) for command in later.commands] == [3]


def test_d16_it_comes_as_soon_as_few_enough_are_young() -> None:
    """Three pods came one after the other; two young ones cost less than would be saved."""
    came = [NOW - 3 * MINUTE, NOW - 2 * MINUTE, NOW - MINUTE]
    crowded = node("n", "medium", *(pod(f"p{at}", created=at) for at in came))
    for savings, settled in ((0.25, came[0]), (0.2, came[1]), (0.15, came[1]), (0.05, came[2])):
        candidate = Candidate(crowded, pool(), None, tuple(crowded.pods), price=1.0, cost=1.0)
        why = too_soon(savings, (candidate,), Fleet(0.1 * 10 / SHARE + savings, 10), NOW)
        assert why is not None
        assert settled_at((crowded,), why, NOW) == settled + 10 * MINUTE, savings


def test_d16_what_a_pod_costs_counts_and_no_pod_of_a_daemonset() -> None:
    came = [NOW - (9 - number) * MINUTE for number in range(9)]
    pods = [pod(f"p{at}", created=at) for at in came]
    daemon = pod("daemon", created=NOW - 1, owner=DAEMON)
    crowded = node("n", "medium", *pods, daemon)
    candidate = Candidate(crowded, pool(), None, tuple(pods), price=0.5, cost=1.0)
    why = too_soon(0.2, (candidate,), Fleet(1.2, 10), NOW)
    assert why is not None
    assert why.params["limit"] == pytest.approx(2 * 0.3), "twice the replacement; nine pods count for 1.35"
    assert settled_at((crowded,), why, NOW) == came[-2] + 10 * MINUTE, "one young pod counts less than is saved"
