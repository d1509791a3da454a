"""One run of `kerf simulate`: documents in, story and report out."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kerf.adapters.cli.input.documents import Documents, read_documents
from kerf.adapters.cli.render.live_story import LiveStory
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.simulation_report import ReportFold, SimulationReport
from kerf.adapters.cli.simulate.market import catalogues, known_values, zones_of
from kerf.adapters.cli.simulate.node_classes import resolver
from kerf.adapters.cli.simulate.runtime import SIMULATE_HOLDER, runtime_factory
from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.documents.apply import identify
from kerf.adapters.simulation.driver import Driver
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timeline.timeline import decode_timeline, is_timeline
from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.model.feature_gates import with_gates
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Intent
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import Observation
from kerf.engine.record.store import Store
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.scheduling.problem.scheduler_config import default_constraints

AFTERWARDS = 7_200_000
"""How long (ms) a simulation goes on after the last action of its Timelines, where --until is not given."""


def simulation_settings(gates: str, scheduler_config: Path | None, *, nominate: bool) -> Settings:
    """The settings of the simulated controller. Raises InputError for flags that it would not start with."""
    settings = with_gates(Settings(nominations=nominate), gates)
    if scheduler_config is None:
        return settings
    documents = read_documents([scheduler_config])
    for refused in documents.refused:
        raise refused.error
    return replace(settings, default_spread=default_constraints(documents.good[0] if documents.good else None))


def simulated_time(text: str) -> int:
    """The duration (ms) that --until gives. Raises InputError (KERF332)."""
    try:
        length = parse_go_duration(text)
    except InputError as error:
        raise InputError(error.message, where="--until", hint=error.hint, code="KERF332") from error
    if length <= 0:
        raise InputError("a simulation lasts longer than nothing", where="--until", code="KERF332")
    return length


def last_action(documents: Sequence[dict[str, Any]]) -> int:
    """When the last action of a Timeline happens (ms since the start). Malformed ones are refused elsewhere."""
    timelines = [document for document in documents if is_timeline(document)]
    return max((each.after for timeline in timelines for each in decode_timeline(timeline)[0]), default=0)


class SimulationRun:
    """One simulation and its record. `go` until a time; `report` says how it ended."""

    def __init__(self, documents: Documents, store: Store, *, seed: int, quiet: bool, settings: Settings) -> None:
        region, zones = zones_of(documents.good)
        catalogue_of = catalogues(region, zones)
        self.catalogue = catalogue_of(None)
        self.simulation: Simulation = build_simulation(
            documents.good,
            catalogue=self.catalogue,
            catalogue_of=catalogue_of,
            resolve=resolver(zones),
            seed=seed,
            settings=settings,
            known=known_values(self.catalogue, zones),
        )
        for each in documents.refused:
            self.simulation.refuse(each.error, source="manifest", item=each.item)
        self.accepted = _any_accepted(documents.good, {each.object for each in self.simulation.refused})
        self.story = LiveStory(None if quiet else Printer(), START)
        self.fold = ReportFold(START)
        self.driver = Driver(
            self.simulation,
            runtime_factory(
                store,
                holder=SIMULATE_HOLDER,
                record=_identity(documents.digest, seed),
                report=self._take_in,
                settings=settings,
            ),
            listener=self._turn,
        )

    def go(self, until: int) -> None:
        self.driver.run(until)

    def report(self, record: Path | None) -> SimulationReport:
        runtime = self.driver.runtime
        assert isinstance(runtime, Runtime)
        for item, note in self.simulation.notes:  # with those on what Timelines applied
            self.fold.note(item, note)
        now, prices = self.simulation.clock.now, self.catalogue.source
        gated = self.simulation.cluster.api.gated
        return self.fold.report(runtime.state, now, record=record, prices=prices, gated=gated)

    def _turn(self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]) -> None:
        runtime = self.driver.runtime
        if isinstance(runtime, Runtime):
            self._take_in(runtime.new_entries)
            if runtime.error is not None:  # a controller waits until its record can be written; a command ends
                raise runtime.error

    def _take_in(self, entries: Sequence[Entry]) -> None:
        self.story.tell(entries)
        self.fold.apply(entries)


def _any_accepted(documents: Sequence[dict[str, Any]], refused: set[str]) -> bool:
    """Whether a document, or an item of a List, is not among those that were refused."""
    items = (
        item
        for document in documents
        for item in (document.get("items") or () if document.get("kind") == "List" else (document,))
    )
    return any(isinstance(item, dict) and identify(item) not in refused for item in items)


def _identity(digest: str, seed: int) -> str:
    """The record's id. A real record has a random one; here the same input gives the same, so that runs can be
    compared."""
    return f"simulation-{blake2b(f'{digest}/{seed}'.encode(), digest_size=8).hexdigest()}"
