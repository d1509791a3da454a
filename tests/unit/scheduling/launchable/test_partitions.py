"""Partitions of a placement group: A-167, A-246, A-317."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import PodShape, Selector, SpreadConstraint
from kerf.engine.scheduling.planner import plan
from tests.support.lives import claim_of
from tests.support.records import re_derived
from tests.support.scenarios.problems import Workloads, instance_type, pool, problem, shape, spec
from tests.support.world import CATALOGUE, World
from tests.support.world import pool as world_pool

PARTITIONED = Catalogue((instance_type("small", 2, labels={lbl.PARTITION: ("1", "2", "3")}),))
WEB = {"app": "web"}


def partitions(given: PodShape, count: int = 1, catalogue: Catalogue = PARTITIONED) -> list[str]:
    """The partitions of the claims for so many pods; "" for one without."""
    planned = plan(problem(Workloads().add("a", count, given), catalogue, pool("p")))
    assert planned.unplaced == ()
    return sorted(claim.labels.get(lbl.PARTITION, "") for claim in planned.claims)


def test_a246_pods_that_spread_over_partitions_get_one_each() -> None:
    spread = SpreadConstraint(lbl.PARTITION, 1, selector=Selector(WEB))
    assert partitions(shape(1_500, labels=WEB, spread=(spread,)), 3) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (spec(lbl.PARTITION, "In", "3", "2"), "2"),
        (spec(lbl.PARTITION, "NotIn", "1"), "2"),
        (spec(lbl.PARTITION, "Exists"), "1"),
    ],
)
def test_a317_of_several_partitions_the_lowest_is_taken(asked: RequirementSpec, given: str) -> None:
    work = Workloads().add("a", 1, shape(1_500))
    (claim,) = plan(problem(work, PARTITIONED, pool("p", asked))).claims
    assert claim.labels[lbl.PARTITION] == given


def test_a246_who_asks_for_no_partition_gets_none_nor_does_anybody_without_a_partition_group() -> None:
    assert partitions(shape(1_500)) == [""]
    without = Catalogue((instance_type("small", 2),))
    assert partitions(shape(1_500, node_selector={lbl.PARTITION: "2"}), catalogue=without) == [""]
    assert partitions(shape(1_500, node_selector={lbl.PARTITION: "2"})) == ["2"]


@pytest.mark.parametrize("static", [False, True])
def test_a316_the_node_is_labelled_with_its_partition(static: bool) -> None:
    kinds = tuple(
        replace(kind, requirements={**kind.requirements, lbl.PARTITION: ("1", "2")}) for kind in CATALOGUE.types
    )
    world = World(static_capacity=True)
    asked = (RequirementSpec(lbl.PARTITION, "In", ("2",)),)
    given = replace(world_pool(), requirements=asked, replicas=1 if static else None)
    world.prepare(given, replace(CATALOGUE, types=kinds))
    if not static:
        world.pending("a")
        world.after(1_000)
    ((ref, order),) = world.launches()
    assert order.labels[lbl.PARTITION] == "2"
    world.answer_launch(ref, order)
    assert claim_of(world).labels[lbl.PARTITION] == "2"
    assert re_derived(world.store) == world.store.entries
