"""Cuts a record that no controller writes. Does at once what `kerf run` does bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import kerf
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.retention import cut as cutting
from kerf.adapters.store.retention.policy import Due, base_at
from kerf.engine.record.errors import FormatUnsupported
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.load import load

HOLDER = "kerf store prune"
Progress = Callable[[int], None]


def cut_now(store: ChainedStore, due: Due, *, progress: Progress | None = None) -> None:
    """Cuts the record. Raises StoreError.

    Takes office first, at the time of the record's last entry, so that the store refuses any writer that still runs.
    """
    facts = load(store).facts
    if facts.unknown:
        what = "the record holds entries of a newer kerf: what it would begin with leaves them out"
        raise FormatUnsupported(what, where=store.place, hint="Cut it with that version of kerf")
    base = base_at(store, due.base)
    announced = cutting.propose(store, base, after=due.after)
    runtime = Runtime(
        store, holder=HOLDER, settings=facts.settings, record=facts.record, engine=kerf.__version__, now=facts.at
    )
    runtime.turn([Observation(announced)], facts.at)
    if runtime.error is not None:
        raise runtime.error
    cutting.begin(store, runtime.state.facts.cut)
    finish(store, progress=progress)


def finish(store: ChainedStore, *, progress: Progress | None = None) -> None:
    """Removes what a cut has left behind, if anything. Raises StoreError."""
    for position in cutting.steps(store):
        if progress is not None:
            progress(position)
