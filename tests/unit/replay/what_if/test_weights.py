"""A NodePool of more weight hides what another one would sell for less, and the answer says so."""

from __future__ import annotations

from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.record.observations import Observation
from kerf.engine.state.load import load
from kerf.projections.prose.changes import change_words
from kerf.replay.what_if import node
from tests.support.lives import in_service
from tests.support.world import pool

MINUTE = 60_000


def asked(capacity_type: str, weight: int) -> node.WhatWouldChange:
    """Of an on-demand node of a NodePool of weight 50, beside another NodePool."""
    world = in_service(weight=50)
    world.see(Observation(pool("other", capacity_type, weight=weight)))
    world.after(30 * MINUTE)
    cluster = cluster_of(load(world.store), world.now)
    (there,) = cluster.nodes
    return node.explore_changes(cluster, there.place.claim, node.consolidation, DisruptionReason.UNDERUTILIZED)


def test_a_cheaper_node_of_a_nodepool_of_less_weight_is_named() -> None:
    way = asked("spot", 10)
    assert way.verdict is not None
    assert way.verdict.code == "nothing-cheaper"
    assert [change_words(change) for change in way.changes] == [
        "NodePool default (weight 50) were not asked before NodePool other, of less weight"
    ]
    assert way.goes is not None
    assert way.goes.savings > 0


def test_a_weight_that_hides_nothing_cheaper_is_of_no_account() -> None:
    way = asked("on-demand", 10)
    assert (way.changes, way.goes) == ((), None)
    assert way.need is not None
    assert (way.need.instance_type, way.need.price) == ("m5.large", 0.096)


def test_a_nodepool_that_was_asked_before_hides_nothing() -> None:
    assert asked("on-demand", 50).changes == ()
