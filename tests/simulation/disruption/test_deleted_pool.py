"""A NodePool is deleted while its node works: the whole controller lets go of it (L-256)."""

from __future__ import annotations

from kerf.engine.record.observations import NodeClaimDeletionSeen
from tests.support.simulation.run import Run, scale, workshop


def test_the_nodes_of_a_deleted_pool_are_drained_and_ended() -> None:
    run = Run(workshop(scale("10s", 5), {"at": "10m", "action": "delete", "kind": "NodePool", "name": "default"}))
    launched = [entry.payload.claim for entry in run.entries("claim.launched")]
    assert launched
    asked = [entry.payload for entry in run.entries("nodeclaim.deletion-seen")]
    assert asked == [NodeClaimDeletionSeen(claim, "garbage collector") for claim in launched]
    assert run.simulation.cloud.alive() == []
    assert run.simulation.cluster.api.nodes == {}
    assert {pod.phase for pod in run.simulation.cluster.api.pods.values()} == {"Pending"}


def test_nothing_of_a_pool_that_is_deleted_during_a_launch_stays() -> None:
    """The claim appears after its owner is gone."""
    launched = 0
    for moment in ("11s", "12s", "13s", "30s"):
        actions = (scale("10s", 5), {"at": moment, "action": "delete", "kind": "NodePool", "name": "default"})
        run = Run(workshop(*actions))
        launched += len(run.entries("claim.launched"))
        assert run.simulation.cloud.alive() == []
        assert run.simulation.cluster.api.nodes == {}
    assert launched
