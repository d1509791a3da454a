"""One run of the model, recorded as the run of a controller is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.cli.replaying.model import build_model
from kerf.adapters.cli.simulate.new_record import new_record
from kerf.adapters.cli.simulate.runtime import REPLAY_HOLDER, runtime_factory
from kerf.adapters.simulation.driver import Driver
from kerf.engine.record.decisions import Intent
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.runtime import Runtime
from kerf.replay.modelled.figures import FiguresFold
from kerf.replay.modelled.workload import Workload


class ModelledRun:
    """A run of the model, with the changes or without them. After `go`, `figures` has what it came to."""

    def __init__(self, workload: Workload, *, changed: bool, tell: Callable[[int], None]) -> None:
        """`tell` is called with the modelled time reached (ms since the epoch)."""
        self.figures = FiguresFold()
        self._workload, self._changed, self._tell = workload, changed, tell

    def go(self, record: Path | None) -> None:
        """Run to the end. Keep the record at this path, if there is one; what was there before stays until then.

        Raises RecordExists (KERF114), NotModelled (KERF213), and what the engine and the simulation raise.
        """
        workload = self._workload
        self._model = build_model(workload, changed=self._changed)
        simulation = self._model.simulation
        with new_record(record, REPLAY_HOLDER, say=print_error) as new:
            factory = runtime_factory(
                new.store,
                holder=REPLAY_HOLDER,
                record=self._identity(),
                report=self._take_in,
                settings=simulation.settings,
            )
            self._driver = Driver(simulation, factory, listener=self._turn)
            self._driver.run(workload.until)
            self._driver.end_record()

    @property
    def missed(self) -> int:
        """How many blows hit nothing, since the model has no instance of their offering."""
        return self._model.missed

    def _turn(self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]) -> None:
        runtime = self._driver.runtime
        if isinstance(runtime, Runtime):
            self._take_in(runtime.new_entries)
            if runtime.error is not None:
                raise runtime.error
        self._tell(now)

    def _take_in(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.figures.apply(entry)

    def _identity(self) -> str:
        """The id of the modelled record: the same question makes the same record."""
        workload = self._workload
        asked = (workload.start.facts.record, workload.since, workload.until, self._changed and workload.changes)
        return f"model-{blake2b(repr(asked).encode(), digest_size=8).hexdigest()}"
