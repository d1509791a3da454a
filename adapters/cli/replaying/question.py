"""What `kerf replay` asks: the part of the record, the runs of the model, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kerf.adapters.cli.figures import fold_into
from kerf.adapters.cli.records import beginning_at, located
from kerf.adapters.cli.render.progress import ProgressLine, progress_line
from kerf.adapters.cli.render.simulation.live_story import elapsed_text
from kerf.adapters.cli.replaying.modelled_run import ModelledRun
from kerf.adapters.store.open import AnyStore
from kerf.engine.record.store import Store
from kerf.replay.errors import PositionUnknown
from kerf.replay.modelled.comparison import Modelled, compared
from kerf.replay.modelled.extraction import Window, first_listed, workload_of_record
from kerf.replay.modelled.figures import FiguresFold
from kerf.replay.modelled.workload import Workload
from kerf.replay.what_if.changes import Change
from kerf.replay.what_if.next_decision import turn_of
from kerf.replay.workers import Workers

LONG = 1_000
"""Entries of a part from which on its two runs go on side by side. Shorter ones gain little by another process."""


def window_of(store: AnyStore, begin: str, end: str) -> Window:
    """The part between two moments, whole turns. It begins when the record knows what there is, at the earliest.

    Raises PositionUnknown (KERF202) for what lies outside of the record, or ends before it begins.
    """
    earliest = located(store, str(first_listed(store)))
    since = earliest if begin == "start" else beginning_at(store, begin)
    since = since if since.position > earliest.position else earliest
    until = located(store, end)
    if until.at <= since.at:
        raise PositionUnknown(
            f"there is nothing between --from {begin} and --until {end}", hint="Ask for a longer part"
        )
    position = turn_of(store, since.position, again=False)
    return Window(position, since.at, until.position, until.at)


def replayed(
    store: AnyStore, window: Window, changes: Sequence[Change], record: Path | None, workers: Workers | None = None
) -> Modelled:
    """Run the model without the changes and with them, and compare. The record of the changed run (without changes, of
    the only one) is kept at `record`. With `workers`, another process does the unchanged run of a long part meanwhile;
    the answer is the same.

    Raises ChangeRefused (KERF208), PartialRecord (KERF211), NotModelled (KERF213), and what stores and runs raise.
    """
    recorded = FiguresFold()
    fold_into(store, window.last, recorded)
    with progress_line("reading position") as tell:
        workload = workload_of_record(store, window, changes, tell)
    if not changes:
        return compared(workload, recorded, _run(workload, changed=False, record=record).figures, None)
    if workers is not None and window.last - window.position >= LONG:
        meanwhile = workers.submit(UnchangedRun(window))
        changed = _run(workload, changed=True, record=record)
        unchanged = meanwhile.result()
    else:
        unchanged = _run(workload, changed=False, record=None).figures
        changed = _run(workload, changed=True, record=record)
    return compared(workload, recorded, unchanged, changed.figures, changed.missed)


class UnchangedRun(Struct, frozen=True):
    """The unchanged run of a part, in another process."""

    window: Window

    def run(self, store: Store) -> FiguresFold:
        """Run the model. Raises what `replayed` does."""
        run = ModelledRun(workload_of_record(store, self.window), changed=False, tell=_tell_nobody)
        run.go(None)
        return run.figures


def _tell_nobody(_now: int) -> None:
    """The changed run's progress is told."""


def _run(workload: Workload, *, changed: bool, record: Path | None) -> ModelledRun:
    what = "with the change:" if changed else "unchanged:"
    line = ProgressLine(f"modelling {what}", lambda now: elapsed_text(now - workload.since))
    run = ModelledRun(workload, changed=changed, tell=line.tell)
    try:
        run.go(record)
    finally:
        line.clear()
    return run
