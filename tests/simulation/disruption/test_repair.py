"""A kubelet falls silent for good: with the gate open the whole controller replaces its node by force, and its record
says the same when it is decided again (D-134…D-136)."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.settings import Settings
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import HOUR, Run, scale, workshop

SILENT = {"at": "5m", "action": "node-notready", "count": 1}


def tainted(run: Run) -> list[Any]:
    return [entry.payload for entry in run.entries("claim.tainted")]


def test_a_node_that_stays_silent_is_replaced() -> None:
    run = Run(workshop(scale("10s", 5), SILENT), until=2 * HOUR, settings=Settings(node_repair=True))
    first = run.entries("claim.launched")[0].payload
    found = [taint for taint in tainted(run) if taint.why == "unhealthy"]
    assert [taint.claim for taint in found] == [first.claim]
    assert found[0].detail.startswith("Ready=")
    ended = next(entry for entry in run.entries("claim.terminated") if entry.payload.claim == first.claim)
    begun = next(entry for entry in run.entries("claim.tainted") if entry.payload.claim == first.claim)
    assert ended.at - begun.at < 10 * 60_000, "nothing waits for pods that nobody can end"
    assert {pod.phase for pod in run.simulation.cluster.api.pods.values()} == {"Running"}
    assert verify(run.store).exit_code == 0


def test_without_the_gate_it_stays() -> None:
    run = Run(workshop(scale("10s", 5), SILENT), until=2 * HOUR)
    assert [taint for taint in tainted(run) if taint.why == "unhealthy"] == []
