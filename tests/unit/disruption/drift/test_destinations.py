"""Pods of drifted nodes find places as the cluster's scheduler looks for them (D-64, D-65)."""

from __future__ import annotations

from typing import Any

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.drift.replacement import replace_drifted
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from tests.support.scenarios.clusters import NOW, cluster, node, pod, pool

LARGE, LITTLE = pod("large", 1_500), pod("little", 700)


def drifted(name: str, *pods: Any, size: str = "medium") -> ClusterNode:
    return node(name, size, *pods, drifted_since=NOW - 1_000)


def room(name: str, free: int) -> ClusterNode:
    return node(name, "medium", pod(f"there-{name}", 4_000 - free))


def moves(given: Cluster) -> tuple[list[Move], dict[str, Reason]]:
    refused: dict[str, Reason] = {}
    return replace_drifted(given, refused), refused


def test_d65_pods_that_the_scheduler_finds_places_for_get_no_node() -> None:
    (found,), _ = moves(cluster(drifted("a", LARGE, LITTLE), room("b", 1_500), room("c", 1_500)))
    assert found.replacements == ()
    assert {uid for placement in found.placements for uid in placement.pods} == {"uid-large", "uid-little"}


def test_d65_where_it_may_leave_one_over_the_replacement_holds_all_of_them() -> None:
    """The small one would take the room that only the large one needs."""
    given = cluster(drifted("a", LARGE, LITTLE), room("b", 1_500), room("c", 700))
    (found,), _ = moves(given)
    assert [sorted(new.pods) for new in found.replacements] == [["uid-large", "uid-little"]]
    assert found.placements == ()


def test_d65_several_that_go_at_once_are_asked_of_together() -> None:
    """Each by itself would find its place."""
    rooms = room("c", 1_500), room("d", 700)
    given = cluster(drifted("a", LARGE, size="small"), drifted("b", LITTLE, size="small"), *rooms)
    found, _ = moves(given)
    assert [move.claims for move in found] == [("claim-a",), ("claim-b",)]
    assert [len(move.replacements) for move in found] == [0, 1]


def test_d65_a_node_goes_all_the_same_where_nothing_may_be_launched() -> None:
    given = cluster(drifted("a", LARGE, LITTLE), room("b", 1_500), room("c", 700), pools=(pool(limits={"cpu": 0}),))
    (found,), refused = moves(given)
    assert (found.replacements, refused) == ((), {})
