"""What `kerf status` shows: once, or anew whenever a controller has written something."""

from __future__ import annotations

import os
import sys
import time

from kerf.adapters.cli.records import located
from kerf.adapters.cli.render.moment.status import status_text
from kerf.adapters.cli.render.output import Printer, emit_json, emit_json_line
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import AnyStore
from kerf.engine.state.evolve import evolve
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.projections.cluster_status.structs import ClusterStatus
from kerf.projections.json_times import with_times
from kerf.replay.time_travel.moments import MOST_AFTER_END, end_of
from kerf.replay.time_travel.status import status_of, with_recent

LOOKED_EVERY = 2.0  # seconds between looks at a record that is watched
_CLEAR = "\x1b[H\x1b[2J"
"""To the upper left corner, and everything away."""


class StatusView:
    """The status of a record."""

    def __init__(self, store: AnyStore, *, all_nodes: bool, json: bool) -> None:
        self._store, self._all_nodes, self._json = store, all_nodes, json

    def show(self, at: str | None = None) -> None:
        """Print the status at a moment, by default that of now."""
        moment = located(self._store, "end" if at is None else at)
        state = load(self._store, moment.position)
        captured = state.facts.imported is not None  # nobody writes it any more
        found = self._status(state, moment.at if at is not None or captured else _now(moment.at))
        if self._json:
            emit_json(with_times(found))
        else:
            status_text(Printer(), found, all_nodes=self._all_nodes)

    def follow(self) -> None:
        """Print the status of now, again and again until Ctrl-C. A record that nobody can write is shown once."""
        if not isinstance(self._store, ChainedStore):
            self.show()
            return
        state, shown = load(self._store, end_of(self._store).position), 0
        while True:
            for entry in self._store.scan(state.facts.position):
                evolve(state, entry)
            if state.facts.position > shown or sys.stdout.isatty():
                shown = state.facts.position
                self._print_next(self._status(state, _now(state.facts.at)))
            time.sleep(LOOKED_EVERY)

    def _status(self, state: State, now: int) -> ClusterStatus:
        return with_recent(self._store, status_of(self._store, state, now))

    def _print_next(self, found: ClusterStatus) -> None:
        if self._json:
            emit_json_line(with_times(found))
        else:
            clears = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
            if clears:
                sys.stdout.write(_CLEAR)
            status_text(Printer(), found, all_nodes=self._all_nodes)
            if not clears:
                Printer().line()
        sys.stdout.flush()


def _now(last: int) -> int:
    """Return the time of the clock, if a record whose last entry is of `last` may still be written; else that."""
    now = time.time_ns() // 1_000_000
    return now if last <= now <= last + MOST_AFTER_END else last
