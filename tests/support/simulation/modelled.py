"""Runs the workload of a record in the model, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.adapters.cli.replaying.modelled_run import ModelledRun
from kerf.engine.record.store import Store
from kerf.engine.state.load import load
from kerf.replay.modelled.comparison import Modelled, compared
from kerf.replay.modelled.extraction import Window, first_listed, workload_of_record
from kerf.replay.modelled.figures import FiguresFold
from kerf.replay.modelled.workload import Workload
from kerf.replay.what_if.changes import Change


def workload_of(store: Store, changes: Sequence[Change] = (), since: int = 0) -> Workload:
    """The workload of a whole record, or from a time on."""
    entries = list(store.scan())
    position = first_listed(store)
    if since:
        position = max(entry.position for entry in entries if entry.at <= since)
    begin = since or load(store, position).facts.at
    return workload_of_record(store, Window(position, begin, entries[-1].position, entries[-1].at), changes)


def modelled(store: Store, changes: Sequence[Change] = (), since: int = 0) -> Modelled:
    """The answer of `kerf replay`."""
    workload = workload_of(store, changes, since)
    recorded = FiguresFold()
    for entry in store.scan():
        recorded.apply(entry)
    unchanged = run_model(workload)
    return compared(workload, recorded, unchanged, run_model(workload, changed=True) if changes else None)


def run_model(workload: Workload, *, changed: bool = False) -> FiguresFold:
    run = ModelledRun(workload, changed=changed, tell=lambda now: None)
    run.go(None)
    return run.figures
