"""Single pods without which a node would go."""

from __future__ import annotations

from unittest.mock import patch

from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.state.load import load
from kerf.replay.what_if import node
from tests.support.lives import in_service

MINUTE = 60_000


def test_of_pods_that_differ_in_name_and_age_alone_one_is_tried_and_the_answer_is_that_of_each() -> None:
    world = in_service()
    world.after(30 * MINUTE)
    cluster = cluster_of(load(world.store), world.now)
    (there,) = cluster.nodes
    goes = node.WouldGo(claims=(there.place.claim,))
    with patch.object(node, "_would_go_alone", return_value=goes) as tried:
        way = node.explore_changes(cluster, there.place.claim, node.consolidation, DisruptionReason.UNDERUTILIZED)
    assert len(there.pods) == 5
    assert {found.pod: found.goes for found in way.without} == {pod.key: goes for pod in there.pods}
    assert tried.call_count == 2, "without one of the pods, and with all of them"
