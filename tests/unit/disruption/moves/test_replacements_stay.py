"""What replaces nodes that have not begun to drain is no candidate (D-8, D-116)."""

from __future__ import annotations

from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.record.decisions import Move, PlannedClaim
from kerf.engine.state.state import Underway
from tests.support.lives import claim_of, in_service


def test_a_replacement_waits_with_the_others_for_the_pods_of_its_move() -> None:
    """It is in service, the move's other one is not yet: empty as it is, it went."""
    world = in_service()
    state, claim = world.runtime.state, claim_of(world)
    later = claim.nominated_until + 1
    assert [node.nominated for node in cluster_of(state, later).nodes] == [False]
    new = PlannedClaim(claim.name, claim.node_pool, (), (), (), {}, 0.0, ())
    move = Move("drifted", ("gone",), (new,))
    state.facts.moves["1.0"] = Underway(move, later)
    assert [node.nominated for node in cluster_of(state, later).nodes] == [False]
    state.facts.moves["1.0"] = Underway(move, later, started=True)
    assert [node.nominated for node in cluster_of(state, later).nodes] == [True]
