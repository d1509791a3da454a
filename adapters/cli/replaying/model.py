"""Build a simulated world of a recorded workload."""

from __future__ import annotations

from functools import partial
from itertools import cycle

from msgspec.structs import replace

from kerf.adapters.cli.replaying.beginning import furnish
from kerf.adapters.cli.replaying.catalogues import RecordedCatalogues
from kerf.adapters.cli.replaying.steps import Model
from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timing import Timing
from kerf.engine.errors import KerfError
from kerf.replay.modelled.workload import USUAL, Pace, Replicas, Timed, Workload


def build_model(workload: Workload, *, changed: bool, seed: int = 0) -> Model:
    """A world that holds what the record had at the beginning, and in which its steps happen at their times: with the
    changes, or without them. A step that cannot be done is refused and recorded (see `Simulation.refused`)."""
    settings = workload.changed_settings if changed else workload.settings
    catalogues = RecordedCatalogues(workload.start)
    simulation = Simulation(
        catalogues.shared, clock=Clock(workload.since), seed=seed, timing=_timing(workload.pace), settings=settings
    )
    catalogues.stock(simulation.cloud.market)
    for digest, shape in sorted(workload.shapes.items()):
        simulation.cluster.api.shapes[digest] = shape
    simulation.cluster.kubelets.joins = cycle(workload.pace.joins)
    simulation.cloud.failures = iter(workload.pace.failures)
    simulation.launch_answers = cycle(workload.pace.answers)
    model = Model(simulation, workload, catalogues)
    steps = [timed for timed in workload.steps if timed.changed in (None, changed)]
    for timed in steps:  # controllers know how many replicas there are to be before they see the first
        if timed.at == workload.since and isinstance(timed.step, Replicas):
            model.perform(timed.step)
    furnish(model, workload)
    for timed in steps:
        simulation.clock.at(timed.at, "recorded step", partial(_perform, model, timed))
    return model


def _perform(model: Model, timed: Timed) -> None:
    try:
        model.perform(timed.step)
    except KerfError as error:
        model.simulation.refuse(error, source="record", item=type(timed.step).__name__.lower())


def _timing(pace: Pace) -> Timing:
    """The usual durations, where the record does not say others."""
    known = {name: took for name in USUAL if (took := getattr(pace, name)) is not None}
    return replace(Timing(), **known)
