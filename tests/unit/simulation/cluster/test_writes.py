"""Writes over a network that fails."""

from __future__ import annotations

from kerf.adapters.simulation.cluster.writes import FaultyWrites
from kerf.adapters.simulation.faults import FaultPlan
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.decisions import TaintNode

TAINT = TaintNode("c", "n")


def writes(world: Simulation, **faults: float) -> FaultyWrites:
    world.cluster.apply(Node("n", "uid-n"))
    return FaultyWrites(world.cluster, world.rng, world.clock, FaultPlan(**faults))  # type: ignore[arg-type]


def test_without_faults_a_write_happens(world: Simulation) -> None:
    assert writes(world).taint(TAINT, intent="1.0").ok
    assert world.cluster.api.nodes["n"].taints


def test_a_refused_write_has_not_happened(world: Simulation) -> None:
    answer = writes(world, write_refused=1.0).taint(TAINT, intent="1.0")
    assert (answer.ok, answer.intent) == (False, "1.0")
    assert answer.code in ("409", "429", "500")
    assert not world.cluster.api.nodes["n"].taints


def test_a_write_whose_answer_is_lost_has_happened(world: Simulation) -> None:
    answer = writes(world, write_lost=1.0).taint(TAINT, intent="1.0")
    assert (answer.ok, answer.code) == (False, "504")
    assert world.cluster.api.nodes["n"].taints
