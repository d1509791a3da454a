"""Nodes that are chosen together, and the order in which their pods leave (issue 5, point 3; L-198, D-110)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.consolidation.joint_search import JointRemoval, find_joint_removal
from kerf.engine.disruption.consolidation.sequential_search import choose_commands
from kerf.engine.disruption.disruption_pass import cheapest_commands
from kerf.engine.disruption.moves.due_moves import validate_beside, validate_together
from kerf.engine.disruption.moves.proposal import move_of
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.lifecycle.drain.eviction_waves import wave_grades, wave_of
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pods import PodShape, SpreadConstraint
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.replay.what_if.node import WouldGo, consolidation, node_in
from tests.support.scenarios.clusters import DAEMON, cluster, node, pod, pool, price

SMALL, LARGE, CORE = {"cpu": 100}, {"cpu": 1_500}, {"memory": 4 << 30}


def tight(budget: str = "100%", *, churned: bool = False) -> Cluster:
    """Two nodes whose pods fit on the others exactly, if the large one is there before the small one: `roomier` is the
    one that the scheduler likes best. Nothing may be launched."""
    return cluster(
        node("a", "small", pod("large", 1_500), consolidatable=not churned),
        node("b", "small", pod("little", 700)),
        node("roomier", "medium", pod("there", 2_500)),
        node("tighter", "medium", pod("full", 3_300)),
        pools=(pool(budgets=(Budget(budget),), limits={"cpu": 0}),),
    )


def turns(given: Cluster) -> tuple[int, ...]:
    return wave_grades(given.shapes[pod.shape] for one in given.nodes for pod in one.pods)


def proposed(given: Cluster) -> dict[str, Move]:
    found = find_joint_removal(given)
    assert found.commands is not None
    return {command.names[0]: move_of(command, found.waves) for command in found.commands.commands}


def test_large_pods_leave_first_and_of_as_large_ones_those_that_may_not_go_everywhere() -> None:
    choosy = PodShape(requests=SMALL, spread=(SpreadConstraint("topology.kubernetes.io/zone"),))
    shapes = [PodShape(requests=SMALL), choosy, PodShape(requests=LARGE), PodShape(requests=CORE)]
    given = wave_grades(shapes)
    assert [wave_of(shape, given) for shape in shapes] == [3, 2, 0, 1]


def test_what_spreads_by_host_may_go_nearly_everywhere() -> None:
    hosts = PodShape(requests=SMALL, spread=(SpreadConstraint("kubernetes.io/hostname"),))
    assert wave_grades([hosts, PodShape(requests=SMALL)]) == ()


def test_l198_turns_are_over_before_a_drain_may_be() -> None:
    shapes = [PodShape(requests={"cpu": 1 << n}) for n in range(20)]
    given = wave_grades(shapes)
    assert sorted({wave_of(shape, given) for shape in shapes}) == list(range(6))
    assert wave_of(shapes[0], given) == wave_of(shapes[14], given) == 5


def test_the_scheduler_is_asked_by_turns() -> None:
    given = tight()
    assert Rebinding(given).unbound(["a", "b"], ()) == {"uid-large"}
    assert Rebinding(given, turns(given)).unbound(["a", "b"], ()) == frozenset()


def test_a_set_that_goes_at_once_comes_to_a_cheaper_fleet() -> None:
    given = tight()
    one_by_one = choose_commands(given, fits=Rebinding(given).fits)
    found = find_joint_removal(given)
    assert found.commands is not None
    assert [command.names for command in found.commands.commands] == [("a",), ("b",)]
    assert found.commands.end_price == pytest.approx(2 * price("medium"))
    assert found.commands.end_price < one_by_one.end_price
    assert {name: why.code for name, why in found.commands.kept.items()} == {
        "roomier": "takes-pods",
        "tighter": "takes-pods",
    }


def test_d51_without_rounds_only_where_the_budgets_let_all_of_them_go() -> None:
    assert find_joint_removal(tight("3")) == JointRemoval()
    assert find_joint_removal(tight("4")).commands is not None


def test_the_search_ends_by_its_work_and_says_so() -> None:
    assert find_joint_removal(tight(), steps=1) == JointRemoval(None, turns(tight()), 1)
    short = find_joint_removal(tight(), steps=110)
    assert short.commands is not None
    assert (len(short.commands.commands), short.commands.exhausted, short.steps) == (2, True, 110)


def in_rounds(*more: ClusterNode, budget: str = "1") -> Cluster:
    """Three nodes have few pods for their price, two are full enough to take them. One may go at a time."""
    return cluster(
        node("a", "medium", pod("a1", 500)),
        node("b", "medium", pod("b1", 500)),
        node("f", "medium", pod("f1", 500), pod("f2", 500)),
        node("d", "medium", *(pod(f"d{number}", 500) for number in range(5))),
        node("e", "medium", *(pod(f"e{number}", 500) for number in range(5))),
        *more,
        pools=(pool(budgets=(Budget(budget),), limits={"cpu": 0}),),
        live=True,
    )


def test_d51_where_few_may_go_at_once_a_set_goes_in_rounds() -> None:
    found = find_joint_removal(in_rounds(), rounds=8)
    assert found.commands is not None
    assert (found.in_rounds, found.waves) == (True, ())
    assert [command.names for command in found.commands.commands] == [("a",), ("b",), ("f",)]
    assert {name: why.code for name, why in found.commands.kept.items()} == {"d": "takes-pods", "e": "takes-pods"}
    assert found.commands.end_price == pytest.approx(2 * price("medium"))


def test_d51_no_more_nodes_than_all_rounds_let_go() -> None:
    found = find_joint_removal(in_rounds(node("idle", "small")), rounds=3)
    assert found.commands is not None
    assert [command.names for command in found.commands.commands] == [("idle",), ("a",), ("b",)]
    assert found.commands.kept["f"] == Reason("budget", {"nodepool": "default"})


def test_a_set_in_rounds_has_more_nodes_than_go_at_once() -> None:
    """Otherwise commands one after the other are as good, and they may launch replacements."""
    assert find_joint_removal(in_rounds(budget="3"), rounds=8).commands is None
    assert find_joint_removal(in_rounds(budget="2"), rounds=8).commands is not None


@pytest.mark.parametrize("budget", ["1", "100%"])
@pytest.mark.parametrize("number", [1, 6, 10])
def test_nodes_that_cannot_go_keep_no_set_from_being_found(number: int, budget: str) -> None:
    """They are the first of the order, for each has one pod; but that fits nowhere."""
    stuck = [node(f"x{n}", "large", pod(f"x{n}-1", 7_900)) for n in range(number)]
    found = find_joint_removal(in_rounds(*stuck, budget=budget), rounds=8)
    assert found.commands is not None
    assert [command.names for command in found.commands.commands] == [("a",), ("b",), ("f",)]
    assert {found.commands.kept[one.name].code for one in stuck} == {"no-place"}


def test_a_node_that_takes_the_room_of_many_is_left_out() -> None:
    """It could go alone, and then nothing else."""
    room = node("room", "large", pod("r", 5), consolidatable=False)
    few = [node(f"f{number}", "medium", *(pod(f"f{number}-{n}", 1_400) for n in range(2))) for number in range(3)]
    pools = (pool(budgets=(Budget("1"),), limits={"cpu": 0}),)
    given = cluster(room, *few, node("big", "large", pod("b", 7_700)), pools=pools, live=True)
    assert Simulator(given).without(["big"]).failure is None
    found = find_joint_removal(given, rounds=8)
    assert found.commands is not None
    assert [command.names for command in found.commands.commands] == [("f0",), ("f1",)]


def test_a_pass_takes_the_set_that_goes_in_rounds() -> None:
    chosen, waves = cheapest_commands(in_rounds(), None, {})
    assert ([command.names for command in chosen.commands], waves) == ([("a",), ("b",), ("f",)], ())


def test_d93_a_node_that_has_just_taken_pods_takes_those_of_the_next_round() -> None:
    """Each round makes the nodes that stay settle anew: the next one would have to launch a node."""
    found = find_joint_removal(in_rounds(), rounds=8)
    assert found.commands is not None
    moves = [move_of(command) for command in found.commands.commands]
    later = in_rounds()
    settling = [
        replace(cluster_node, last_pod_event=later.now - 1_000) if cluster_node.name in "de" else cluster_node
        for cluster_node in later.nodes
    ]
    quiet = pool(budgets=(Budget("1"),), limits={"cpu": 0}, consolidate_after=60_000)
    busy = cluster(*settling, pools=(quiet,), live=True)
    assert all(busy.settling(cluster_node) for cluster_node in busy.nodes if cluster_node.name in "de")
    result = validate_beside(moves[0], busy, (), moves[1:])
    assert isinstance(result, Move)
    assert {place.node for place in result.placements} <= {"d", "e"}


def test_empty_nodes_go_beside_and_are_no_places() -> None:
    given = tight()
    found = find_joint_removal(cluster(*given.nodes, node("idle", "small")))
    assert found.commands is not None
    assert [(command.reason, command.names) for command in found.commands.commands] == [
        ("empty", ("idle",)),
        ("underutilized", ("a",)),
        ("underutilized", ("b",)),
    ]


def test_d81_a_node_that_is_not_worth_it_to_a_balanced_nodepool_stays_and_the_others_go() -> None:
    """Its pod has room elsewhere, and costs too much to move: nothing went for its sake."""
    a, b, roomier, _ = tight().nodes
    dear = pod("dear", 100, deletion_cost=(1 << 31) - 1)
    given = cluster(
        a,
        b,
        node("c", "small", dear, pod("agent", 1_900, owner=DAEMON)),
        roomier,
        node("tighter", "medium", pod("full", 3_200)),
        pools=(pool(consolidation_policy="Balanced", limits={"cpu": 0}),),
    )
    found = find_joint_removal(given)
    assert found.commands is not None
    assert [command.names for command in found.commands.commands] == [("a",), ("b",)]
    assert {name: why.code for name, why in found.commands.kept.items()} == {
        "c": "not-worth-it",
        "roomier": "takes-pods",
        "tighter": "takes-pods",
    }
    whenever = find_joint_removal(
        replace(given, base=replace(given.base, pools=cluster(pools=(pool(limits={"cpu": 0}),)).pools))
    )
    assert whenever.commands is not None
    assert [command.names for command in whenever.commands.commands] == [("a",), ("b",), ("c",)]


def test_d110_moves_that_go_together_are_judged_as_a_whole() -> None:
    moves = proposed(tight())
    found = validate_together(moves, tight(), ())
    assert {name: result.placements[0].node for name, result in found.items() if isinstance(result, Move)} == {
        "a": "roomier",
        "b": "tighter",
    }


def test_d110_those_that_are_no_candidates_any_more_stay_and_the_others_go() -> None:
    found = validate_together(proposed(tight()), tight(churned=True), ())
    assert found["a"] == Reason("churn", {"claims": ["claim-a"]})
    assert isinstance(found["b"], Move)


def test_d110_where_the_whole_does_not_hold_any_more_each_is_judged_by_itself() -> None:
    moves = proposed(tight())
    fuller = [cluster_node for cluster_node in tight().nodes if cluster_node.name != "roomier"]
    assert validate_together(moves, cluster(*fuller, node("roomier", "medium", pod("there", 3_000))), ()) == {}


def test_explain_asks_what_a_pass_asks() -> None:
    """Why is it still here: nodes that only go together were said to have no place."""
    given = tight()
    assert isinstance(consolidation(given, node_in(given, "claim-b")), WouldGo)
    assert consolidation(given, node_in(given, "claim-roomier")) == Reason("takes-pods")
