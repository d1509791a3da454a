"""What moves of one pass leave to one another (D-64, D-88): no node hosts two of them, no pod has two places."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from kerf.engine.disruption.drift.replacement import replace_drifted
from kerf.engine.disruption.moves.cluster_with_moves import with_moves
from kerf.engine.disruption.moves.due_moves import validate, validate_beside
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move, Placement, PlannedClaim
from tests.support.scenarios.clusters import NOW, cluster, node, pod


def test_d64_a_drifted_node_that_takes_pods_of_another_stays_until_they_are_there() -> None:
    first = node("first", "small", pod("a", 1_000), drifted_since=NOW - 2_000)
    second = node("second", "small", pod("b", 500), drifted_since=NOW - 1_000)
    refused: dict[str, Reason] = {}
    moves = replace_drifted(cluster(first, second), refused)
    assert [(move.claims, [place.node for place in move.placements]) for move in moves] == [
        (("claim-first",), ["second"])
    ]
    assert refused == {"second": Reason("nominated")}


def test_d64_no_drifted_node_waits_for_ever_behind_many_that_have_no_place() -> None:
    """One pass tries 100 of them, the oldest first; in half of its tries the others have their turn."""
    stuck = [node(f"stuck{n}", "small", pod(f"s{n}", 10**6), drifted_since=NOW - 1_000 - n) for n in range(160)]
    one = node("one", "small", pod("p", 500), drifted_since=NOW - 1)
    given = cluster(*stuck, one)
    found = []
    for minute in range(4):
        refused: dict[str, Reason] = {}
        moves = replace_drifted(replace(given, now=NOW + minute * 60_000), refused)
        assert "stuck159" in refused, "the oldest"
        found += [move.claims for move in moves]
        assert len(refused) + len(moves) == 100
    assert ("claim-one",) in found


def test_d88_pods_of_a_node_that_is_going_have_one_place_in_a_pass() -> None:
    """Both simulations look for a place for the pod of the node that goes anyhow; the second finds it placed."""
    going = node("going", "small", pod("g", 1_500), marked=True)
    drifted = [node(f"d{n}", "small", pod(f"p{n}", 1_500), drifted_since=NOW - n) for n in (2, 1)]
    moves = replace_drifted(cluster(going, *drifted), {})
    assert len(moves) == 2
    placed = Counter(uid for move in moves for place in move.placements for uid in place.pods)
    placed.update(uid for move in moves for new in move.replacements for uid in new.pods)
    assert placed == {"uid-g": 1, "uid-p1": 1, "uid-p2": 1}


def test_what_a_move_puts_elsewhere_is_no_longer_on_a_node_that_is_going() -> None:
    given = cluster(node("going", "small", pod("g"), marked=True), node("n", "small", pod("p")), node("big"))
    places = (Placement("big", "claim-big", ("uid-g", "uid-p")),)
    after = with_moves(given, [Move("drifted", ("claim-n",), placements=places)])
    assert {cluster_node.name: [one.uid for one in cluster_node.pods] for cluster_node in after.nodes} == {
        "going": [], "n": [], "big": ["uid-g", "uid-p"],
    }  # fmt: skip


def test_replacements_of_moves_that_are_made_one_by_one_are_different_nodes() -> None:
    """Topology counts by the name of a node: two of one name would be one."""
    after = cluster(node("a", "small", pod("p")), node("b", "small", pod("q")))
    for name in "ab":
        new = PlannedClaim("", "default", (f"uid-{name}",), ("small",), (), {}, 0.1, ("on-demand",))
        after = with_moves(after, [Move("drifted", (f"claim-{name}",), (new, new))])
    names = [one.name for one in after.nodes]
    assert len(names) == len(set(names)) == 6


def test_d110_pods_that_came_to_a_node_after_a_move_of_it_was_proposed_are_no_part_of_another_move() -> None:
    """They may stay. Found by a simulation seed: places were promised to pods of a node whose move was withdrawn a
    moment later, and more was promised there than the place had room for."""
    given = cluster(
        node("a", "small", pod("mine", 500)),
        node("b", "small", pod("late", 500)),
        node("gone", "small", pod("going", 500), marked=True),
        node("c", "medium"),
    )
    other = Move("underutilized", ("claim-b",))
    move = Move("underutilized", ("claim-a",), placements=(Placement("c", "claim-c", ("uid-mine",)),), savings=0.1)
    found = validate(move, given, [other])
    assert isinstance(found, Move)
    assert sorted(uid for place in found.placements for uid in place.pods) == ["uid-going", "uid-mine"]


def test_d110_a_move_of_several_nodes_goes_as_a_whole_or_not_at_all() -> None:
    going, expected = node("a", "small", pod("mine", 500)), node("b", "small", pod("other", 500))
    move = Move("underutilized", ("claim-a", "claim-b"), savings=0.2)
    assert isinstance(validate(move, cluster(going, expected, node("c", "medium")), ()), Move)
    withdrawn = validate(move, cluster(going, replace(expected, nominated=True), node("c", "medium")), ())
    assert withdrawn == Reason.of(DisruptionCode.CHURN, claims=["claim-b"])


def test_d110_a_move_takes_the_room_of_those_that_save_less() -> None:
    """A pod has come to the node on which both have their place: one of two moves has to be given up."""
    dear, cheap = node("dear", "large", pod("a", 1_500)), node("cheap", "medium", pod("b", 1_500))
    given = cluster(dear, cheap, node("there", "medium", pod("came", 1_500)))
    places = {name: (Placement("there", "claim-there", (f"uid-{name}",)),) for name in "ab"}
    first = Move("underutilized", ("claim-dear",), placements=places["a"], savings=0.4)
    second = Move("underutilized", ("claim-cheap",), placements=places["b"], savings=0.2)
    assert isinstance(validate(first, given, [second]), Reason), "not both of them"
    assert validate_beside(first, given, before=[], after=[second]) == first, "nor is its place on the node that goes"
    assert isinstance(validate_beside(second, given, before=[first], after=[]), Reason)


def test_d110_what_a_started_move_was_promised_is_given_to_no_later_one() -> None:
    """Moves that save more start first, whichever pass proposed them: the move that is validated may have been proposed
    before the one that has started."""
    nodes = [node("a", "small", pod("mine", 1_500)), node("gone", "small", pod("going", 1_200), marked=True)]
    given = cluster(*nodes, node("there", "small"), node("too", "small"))
    move = Move("underutilized", ("claim-a",), placements=(Placement("too", "claim-too", ("uid-mine",)),), savings=0.1)
    for promised, other in (("there", "too"), ("too", "there")):
        found = validate(move, replace(given, promised={"uid-going": f"claim-{promised}"}), ())
        assert isinstance(found, Move)
        assert {place.node: place.pods for place in found.placements} == {
            promised: ("uid-going",), other: ("uid-mine",),
        }  # fmt: skip


def test_d110_a_promise_that_cannot_be_kept_is_none() -> None:
    given = cluster(
        node("a", "small", pod("mine", 500)),
        node("gone", "small", pod("going", 1_200), marked=True),
        node("full", "small", pod("came", 1_500)),
        node("there", "medium"),
    )
    move = Move("underutilized", ("claim-a",), savings=0.1)
    found = validate(move, replace(given, promised={"uid-going": "claim-full"}), ())
    assert isinstance(found, Move)
    assert "uid-going" in {place.node: place.pods for place in found.placements}["there"]
