"""One run of `kerf simulate`: documents in, story and report out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kerf.adapters.cli.input.across_objects import repeated_documents as repeated
from kerf.adapters.cli.input.documents import Documents
from kerf.adapters.cli.input.validation import violations_of
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.progress import ProgressLine
from kerf.adapters.cli.render.simulation.live_story import LiveStory, elapsed_text
from kerf.adapters.cli.render.simulation.report import ReportFold, SimulationReport
from kerf.adapters.cli.simulate.ctrl_c import ctrl_c
from kerf.adapters.cli.simulate.market import catalogues, known_values, zones_of
from kerf.adapters.cli.simulate.node_classes import resolver
from kerf.adapters.cli.simulate.runtime import SIMULATE_HOLDER, runtime_factory
from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.documents.apply import identify
from kerf.adapters.simulation.driver import Driver
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timeline.timeline import decode_timeline, is_timeline
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Intent
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import Observation
from kerf.engine.record.store import Store
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.indexes import Blobs
from kerf.projections.prose.amounts import count

AFTERWARDS = 7_200_000
"""How long (ms) a simulation goes on after the last action of its Timelines, where --until is not given."""


def last_action(documents: Sequence[dict[str, Any]]) -> int:
    """When the last action of a Timeline happens (ms since the start). Malformed ones are refused elsewhere."""
    timelines = [document for document in documents if is_timeline(document)]
    return max((action.after for timeline in timelines for action in decode_timeline(timeline)[0]), default=0)


class SimulationRun:
    """One simulation and its record. `go` for a while; `report` says how it ended. `start` is in ms since the epoch.
    A `quiet` run prints no story."""

    def __init__(
        self, documents: Documents, store: Store, *, start: int, seed: int, quiet: bool, settings: Settings
    ) -> None:
        region, zones = zones_of(documents.good)
        catalogue_of = catalogues(region, zones)
        self.catalogue = catalogue_of(None)
        self.simulation: Simulation = build_simulation(
            documents.good,
            catalogue=self.catalogue,
            catalogue_of=catalogue_of,
            resolve=resolver(zones),
            seed=seed,
            start=start,
            settings=settings,
            known=known_values(self.catalogue, zones),
            check=partial(violations_of, published=published_schemas()),
        )
        for document in repeated(documents.good):
            self.simulation.note(identify(document), Reason("stands-twice"))
        for refused in documents.refused:
            self.simulation.refuse(refused.error, source="manifest", item=refused.item)
        self.accepted = _any_accepted(documents.good, {refusal.object for refusal in self.simulation.refused})
        self.start = start
        self.interrupted = False
        self._progress = ProgressLine("virtual time", lambda now: elapsed_text(now - start))
        self.story = LiveStory(
            None if quiet else Printer(), start, Blobs(store.blob).shape, before=self._progress.clear
        )
        self.fold = ReportFold(start)
        self.driver = Driver(
            self.simulation,
            runtime_factory(
                store,
                holder=SIMULATE_HOLDER,
                record=_identity(documents.digest, seed, start),
                report=self._take_in,
                settings=settings,
            ),
            listener=self._turn,
        )

    def go(self, length: int) -> None:
        """Run for so many milliseconds of virtual time, or until somebody presses Ctrl-C: then to the end of the turn,
        so that the record is whole."""
        for timeline, late in Counter(name for name, after in self.simulation.actions if after > length).items():
            self.fold.note(timeline, Reason("after-the-end", {"actions": count(late, "action")}))
        with ctrl_c() as pressed:
            self._pressed = pressed
            try:
                self.driver.run(self.start + length)
                self.driver.end_record()
            except _Interrupted:
                self.interrupted = True
            finally:
                self._progress.clear()

    def report(self, record: Path | None) -> SimulationReport:
        runtime = self.driver.runtime
        assert isinstance(runtime, Runtime)
        for item, note in self.simulation.notes:  # with those on what Timelines applied
            self.fold.note(item, note)
        now, prices = self.simulation.clock.now, self.catalogue.source
        gated = self.simulation.cluster.api.gated
        report = self.fold.report(runtime.state, now, record=record, prices=prices, gated=gated)
        return replace(report, interrupted=self.interrupted)

    def _turn(self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]) -> None:
        runtime = self.driver.runtime
        if isinstance(runtime, Runtime):
            self._take_in(runtime.new_entries)
            if runtime.error is not None:  # a controller waits until its record can be written; a command ends
                raise runtime.error
        self._progress.tell(now)
        if self._pressed():
            raise _Interrupted

    def _take_in(self, entries: Sequence[Entry]) -> None:
        self.story.tell(entries)
        self.fold.apply(entries)


def _any_accepted(documents: Sequence[dict[str, Any]], refused: set[str]) -> bool:
    """Whether a document is not among those that were refused."""
    return any(identify(document) not in refused for document in documents)


def _identity(digest: str, seed: int, start: int) -> str:
    """The record's id. A real record has a random one; here the same input gives the same, so that runs can be
    compared."""
    given = f"{digest}/{seed}" if start == START else f"{digest}/{seed}/{start}"
    return f"simulation-{blake2b(given.encode(), digest_size=8).hexdigest()}"


class _Interrupted(Exception):
    """Somebody pressed Ctrl-C."""
