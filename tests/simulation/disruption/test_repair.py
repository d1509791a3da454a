"""A kubelet falls silent for good: with the gate open the whole controller replaces its node by force, and its record
says the same when it is decided again (D-134…D-136)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model.settings import Settings
from kerf.replay.verify.verify import verify
from tests.support.simulation.edits import frozen
from tests.support.simulation.manifests import of_cpu
from tests.support.simulation.run import HOUR, Run, scale, workshop

SILENT = {"at": "5m", "action": "node-notready", "count": 1}


def tainted(run: Run) -> list[Any]:
    return [entry.payload for entry in run.entries("claim.tainted")]


def test_a_node_that_stays_silent_is_replaced() -> None:
    run = Run(frozen(scale("10s", 5), SILENT), until=2 * HOUR, settings=Settings(node_repair=True))
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
    run = Run(frozen(scale("10s", 5), SILENT), until=2 * HOUR)
    assert tainted(run) == []
    assert len(run.runtime.state.facts.claims) == 2


def test_d50_d60_without_the_gate_it_goes_once_it_is_empty() -> None:
    """It used up the budget of one, and so kept itself and all others: for good."""
    run = Run(workshop(scale("10s", 5), SILENT), until=2 * HOUR)
    first = run.entries("claim.launched")[0].payload
    assert [(taint.claim, taint.why) for taint in tainted(run)] == [(first.claim, "empty")]
    assert len(run.runtime.state.facts.claims) == 1
    assert verify(run.store).exit_code == 0


@pytest.mark.parametrize(("budget", "left"), [("1", 6), ("2", 4), ("0", 6)])
def test_d50_several_silent_nodes_stay_where_the_budgets_let_fewer_go(budget: str, left: int) -> None:
    """It may be the network that is broken, and not they."""
    given = workshop({"at": "5m", "action": "node-notready", "count": 2})
    for document in given:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"]["requirements"][1]["values"] = ["m5.xlarge"]
            document["spec"]["disruption"]["budgets"] = [{"nodes": budget}]
    run = Run([*given, of_cpu("web", 16, 900)], until=2 * HOUR)
    assert len(run.runtime.state.facts.claims) == left
