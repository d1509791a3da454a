"""Modelled runs beside the simulations that they are of: unchanged ones come to the same, changed ones to what a
simulation of the changed configuration comes to."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import pytest

from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.observations import LaunchAnswered
from kerf.replay.modelled.comparison import errors_of
from kerf.replay.modelled.figures import FiguresFold
from kerf.replay.what_if.changes import set_pool_field
from kerf.replay.what_if.offering_changes import without_capacity
from tests.support.simulation.chaos import chaos
from tests.support.simulation.modelled import modelled, workload_of
from tests.support.simulation.run import HOUR, Run, scale, workshop

ACTIONS = (
    scale("10s", 8),
    {"at": "20m", "action": "interrupt", "capacityType": "spot"},
    scale("35m", 3),
    {"at": "40m", "action": "capacity", "instanceType": "c5.large"},
    scale("50m", 0),
    scale("75m", 12),
    scale("95m", 0),
    scale("2h", 1),
)


def simulated(*actions: dict[str, Any], consolidate_after: str = "30s", seed: int = 1) -> Run:
    given = workshop(*actions, capacity_type="spot")
    for document in given:
        if document["kind"] == "NodePool":
            document["spec"]["disruption"]["consolidateAfter"] = consolidate_after
    return Run(given, until=3 * HOUR, seed=seed)


def test_a_modelled_run_without_changes_comes_to_what_was_recorded() -> None:
    answer = modelled(simulated(*ACTIONS).store)

    assert answer.recorded.evictions, "the record shows nothing that could go wrong"
    assert max(answer.errors.values()) < 0.001
    assert answer.unchanged.launched == answer.recorded.launched
    assert answer.unchanged.pending_seconds == pytest.approx(answer.recorded.pending_seconds, rel=0.01)
    assert answer.holds
    assert answer.horizon == answer.until


class _JoinedAtOnce(Run):
    """Its instances join when they are launched, as KWOK's do: their Nodes are seen before the launches are
    answered."""

    def prepare(self, simulation: Simulation) -> None:
        simulation.cluster.kubelets.joins = repeat(0)


def test_instances_whose_nodes_are_seen_before_the_answer_join_as_fast_in_the_model() -> None:
    store = _JoinedAtOnce(workshop(*ACTIONS), until=3 * HOUR).store
    seen = [type(entry.payload) for entry in store.scan() if isinstance(entry.payload, Node | LaunchAnswered)]
    assert seen[0] is Node

    answer = modelled(store)

    assert max(answer.errors.values()) < 0.001
    assert answer.unchanged.pending_seconds == pytest.approx(answer.recorded.pending_seconds, rel=0.01)


@pytest.mark.parametrize("shutdown", [1_000, 60_000])
def test_instances_take_as_long_to_end_in_the_model(shutdown: int) -> None:
    """Each end is a moment at which kerf may decide something else: days later it adds up."""
    store = Run(workshop(*ACTIONS), until=3 * HOUR, timing=Timing(shutdown=shutdown)).store

    answer = modelled(store)

    assert workload_of(store).pace.shutdown == pytest.approx(shutdown, abs=2_500)
    assert max(answer.errors.values()) < 0.0001


def test_a_modelled_change_comes_to_what_a_simulation_of_it_comes_to() -> None:
    change = set_pool_field("default", "spec.disruption.consolidateAfter", "20m")

    answer = modelled(simulated(*ACTIONS).store, [change])
    truth = FiguresFold()
    for entry in simulated(*ACTIONS, consolidate_after="20m").store.scan():
        truth.apply(entry)

    assert answer.changed is not None
    assert answer.changed.cost > answer.unchanged.cost * 1.1
    assert max(errors_of(truth.figures(answer.since, answer.until), answer.changed).values()) < 0.1


def test_a_model_takes_over_what_runs_at_the_moment_where_it_begins() -> None:
    run = simulated(*ACTIONS)

    answer = modelled(run.store, since=run.simulation.start + 15 * 60_000)

    assert answer.errors["cost"] < 0.1
    assert answer.recorded.launched == answer.unchanged.launched


def test_a_node_that_waits_for_its_replacement_where_a_model_begins_goes_as_it_did() -> None:
    """kerf would keep a node of a move that it does not know, and launch a second replacement for it."""
    run = Run(workshop(scale("10s", 8), scale("35m", 3)), until=3 * HOUR)
    (tainted,), (drains,) = run.entries("claim.tainted"), run.entries("claim.drain-started")
    assert tainted.at < drains.at - 10_000, "it waits for its replacement"

    answer = modelled(run.store, since=tainted.at + 5_000)

    came_and_went = [(each.launched, each.gone, each.evictions) for each in (answer.recorded, answer.unchanged)]
    assert came_and_went == [(0, 1, 3), (0, 1, 3)]


def test_a_model_gives_no_new_instance_the_id_of_one_that_it_took_over() -> None:
    """The replacement of a node that drifts at the beginning ended with that node."""
    strike = {"at": "20m", "action": "interrupt", "capacityType": "spot"}
    run = simulated(scale("10s", 8), strike, scale("2h", 7), seed=0)  # the seed of a model
    (taken,) = (entry.payload for entry in run.entries("claim.launched")[1:2])
    types = sorted({"c5.large", "m5.large", "r5.large", "m5.xlarge"} - {taken.instance_type})
    field = "spec.template.spec.requirements[node.kubernetes.io/instance-type].values"

    change = set_pool_field("default", field, types)
    answer = modelled(run.store, [change], since=run.simulation.start + 40 * 60_000)

    assert answer.changed is not None
    assert (answer.changed.launched, answer.changed.gone) == (1, 1)


def test_offerings_that_a_change_takes_away_are_not_bought() -> None:
    run = simulated(*ACTIONS)
    bought = {entry.payload.instance_type for entry in run.entries("claim.launched")}

    answer = modelled(run.store, [without_capacity(name) for name in sorted(bought)])

    assert answer.changed is not None
    assert answer.changed.cost > answer.unchanged.cost


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_the_model_of_a_random_life_under_faults_is_not_far_off(seed: int) -> None:
    answer = modelled(chaos(seed).store)

    assert answer.errors["cost"] < 0.5
