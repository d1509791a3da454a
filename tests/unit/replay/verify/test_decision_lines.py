"""Decisions in one line each."""

from __future__ import annotations

import pytest

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move, ProposedMovesResult, ProvisionResult, Unplaced
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.projections.prose.reasons import sentence
from kerf.replay.verify.decision_lines import decision_lines


def test_s174_the_nodepool_nearest_to_a_place_comes_first() -> None:
    tainted = Reason.of(SchedulingCode.TAINTS, node_pool="general", taints="gpu=true:NoSchedule")
    full = Reason.of(SchedulingCode.NODE_LIMIT, node_pool="gpu", limit="1")
    (line,) = decision_lines(ProvisionResult(unplaced=(Unplaced(("a",), (tainted, full)),)))
    assert line == f"1 pod without a place: {sentence(full)}; {sentence(tainted)}"


@pytest.mark.parametrize(
    ("why", "savings", "told"),
    [
        ("drifted", 0.0, "propose to remove a (drifted)"),
        ("drifted", -0.25, "propose to remove a (drifted), for $0.2500/h more"),
        ("underutilized", 0.25, "propose to remove a (underutilized), to save $0.2500/h"),
    ],
)
def test_a_move_tells_what_it_saves_only_where_it_does(why: str, savings: float, told: str) -> None:
    assert decision_lines(ProposedMovesResult((Move(why, ("a",), savings=savings),))) == [told]
