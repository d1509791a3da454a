"""Build a simulated world from documents: manifests of any number of files, and Timelines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.documents.apply import apply_document, identify
from kerf.adapters.simulation.documents.parts import Document
from kerf.adapters.simulation.faults import FaultPlan
from kerf.adapters.simulation.simulation import Check, Simulation
from kerf.adapters.simulation.timeline.perform import schedule_action, unsold
from kerf.adapters.simulation.timeline.timeline import decode_timeline, is_timeline
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.mistyped import Known
from kerf.engine.model.settings import Settings

START = 1_767_225_600_000
"""When a world begins that does not say: 2026-01-01T00:00:00Z."""


def build_simulation(
    documents: Iterable[Document],
    *,
    catalogue: Catalogue,
    seed: int = 0,
    start: int = START,
    join_delay: int | None = None,
    timing: Timing | None = None,
    faults: FaultPlan | None = None,
    catalogue_of: Callable[[Struct], Catalogue] | None = None,
    resolve: Callable[[EC2NodeClass], EC2NodeClass] | None = None,
    settings: Settings | None = None,
    known: Known | None = None,
    check: Check | None = None,
    pace: float = 0.0,
    sleep: Callable[[float], None] | None = None,
) -> Simulation:
    """A world that holds what the documents say, at `start` (milliseconds since the epoch).

    `settings` are those of the controller: feature gates, and what its cluster's scheduler spreads by default.
    `catalogue_of` makes the catalogue of a NodeClass from its object; without it every class sells `catalogue`.
    `resolve` says what an EC2NodeClass resolves to; without it, its own status does.
    `check` says what else is wrong with a document, which is refused then.
    `known` are the values of labels beside which others may be mistyped; without, those that `catalogue` has.
    `join_delay` (milliseconds) overrides the one in `timing`. With `pace`, a virtual second takes that many
    wall seconds of `sleep`. A document that is bad is refused and recorded (see `Simulation.refused`); the
    others stand.
    """
    timing = timing if timing is not None else Timing()
    if join_delay is not None:
        timing = replace(timing, join=join_delay, join_jitter=min(timing.join_jitter, join_delay))
    clock = Clock(start, pace=pace, sleep=sleep)
    simulation = Simulation(
        catalogue,
        clock=clock,
        seed=seed,
        timing=timing,
        faults=faults,
        catalogue_of=catalogue_of,
        resolve=resolve,
        settings=settings,
        known=known,
        check=check,
    )
    for name in ("default", "kube-system"):
        simulation.cluster.apply(Namespace(name, {"kubernetes.io/metadata.name": name}))
    timelines = []
    for document in documents:
        if is_timeline(document):
            timelines.append(document)
            continue
        for refused, error in apply_document(simulation, document):
            simulation.refuse(error, source="manifest", item=identify(refused))
    for document in timelines:
        add_timeline(simulation, document)
    return simulation


def add_timeline(simulation: Simulation, document: Document) -> None:
    """Schedule the actions of a Timeline. Bad ones are refused and recorded."""
    name = identify(document)
    scheduled, errors = decode_timeline(document)
    for error in errors:
        simulation.refuse(error, source="timeline", item=name)
    for action in scheduled:
        wrong = unsold(simulation, action)
        if wrong is None:
            schedule_action(simulation, action, name)
        else:
            simulation.refuse(wrong, source="timeline", item=name)
