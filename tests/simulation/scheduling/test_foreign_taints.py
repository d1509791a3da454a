"""Somebody else puts a taint on each new node before its pods come: kerf launches ever fewer of them (S-57)."""

from __future__ import annotations

from itertools import pairwise

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.faults import FaultPlan
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import Run, scale, workshop

MINUTE = 60_000


def test_s57_a_taint_on_each_new_node_launches_ever_fewer_of_them() -> None:
    """It was one each ten seconds or so: 270 in three hours. The pods come when nodes are left alone."""
    tainted = FaultPlan(tainted=1.0, until=180 * MINUTE)
    run = Run(workshop(scale("10s", 2)), until=240 * MINUTE, faults=tainted)
    launched = [(entry.at - START) // 1_000 for entry in run.entries("claim.launched")]
    pauses = [after - before for before, after in pairwise(launched)]
    assert all(pause < 2 * 60 for pause in pauses[:3]), "a node takes most of a minute to join"
    assert all(2 * before > after > 1.2 * before for before, after in pairwise(pauses[:8]))
    assert len(pauses) > 10
    assert all(1_800 < pause < 1_860 for pause in pauses[8:])
    assert run.codes_without_place() == {"launched-tainted"}
    assert not run.runtime.state.indexes.pending
    assert verify(run.store).exit_code == 0
