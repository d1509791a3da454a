"""Decisions in one line each."""

from __future__ import annotations

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import ProvisionResult, Unplaced
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.projections.prose.reasons import sentence
from kerf.replay.verify.decision_lines import decision_lines


def test_s174_the_nodepool_nearest_to_a_place_comes_first() -> None:
    tainted = Reason.of(SchedulingCode.TAINTS, node_pool="general", taints="gpu=true:NoSchedule")
    full = Reason.of(SchedulingCode.NODE_LIMIT, node_pool="gpu", limit="1")
    (line,) = decision_lines(ProvisionResult(unplaced=(Unplaced(("a",), (tainted, full)),)))
    assert line == f"1 pod without a place: {sentence(full)}; {sentence(tainted)}"
