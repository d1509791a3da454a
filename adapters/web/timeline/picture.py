"""The picture of a record: at once what there is, and all of it piece by piece.

Most entries of a long record are of pods. A first look leaves them out, and evictions, which takes a tenth of the time:
lanes, marks, cost and nodes are then there. Pods that wait, evictions, how full nodes are and what went wrong come once
all is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from kerf.adapters.cli.limits import NO_LIMITS, LimitReached
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import AnyStore
from kerf.adapters.web.timeline.kept import close_together, keep, read_kept
from kerf.engine.errors import KerfError
from kerf.engine.model.kinds.watched import POD
from kerf.engine.record.claim_events import PodEvicted, PodForced
from kerf.engine.record.codec import CODEC
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, TYPES
from kerf.engine.record.errors import UNDECODABLE
from kerf.engine.record.observations import EffectAnswered, ObjectGone
from kerf.engine.state.indexes import Blobs
from kerf.projections.explorer.drawn import Drawn
from kerf.projections.explorer.overview import OverviewFold
from kerf.replay.history.story import timeline_from_base
from kerf.replay.time_travel.record_beginning import base_as_entries

SHORT = 20_000
"""A record of no more entries is read at once, in half a second, and is not kept."""
KEPT_EVERY = 60.0
"""Seconds until the picture of a record that grows is kept again."""
AT_A_TIME = 500  # entries between two looks at the clock
_LONGEST_GROWTH = 0.2
"""Seconds for which a question reads on in a record that has grown; the rest comes as for a record that is opened."""
_OF_PODS = frozenset(NAME_OF[kind] for kind in (POD.struct, ObjectGone, EffectAnswered, PodEvicted, PodForced))
_PER_PAGE = 20_000


class Picture:
    """Reads what is drawn of one record. `complete` says that all of it is read; `fault` says why it ends early."""

    def __init__(self, store: AnyStore, allowed: Callable[[], float] = lambda: float("inf")) -> None:
        """`allowed` tells how many seconds of CPU time may go into reading all that there is by now."""
        self._store, self._allowed, self._spent = store, allowed, 0.0
        self._fold: OverviewFold | None = None
        self._entries: Iterator[Entry] = iter(())
        self._drawn: Drawn | None = None
        self._keep_again = 0.0
        self.complete, self.fault = False, ""

    @property
    def read(self) -> float:
        """The share of the entries that are read, from 0 to 1."""
        if self.complete:
            return 1.0
        last = self._store.last_position()
        return min(0.99, self._fold.position / last) if self._fold is not None and last else 0.0

    def now(self) -> Drawn:
        """Return what there is of the picture by now. Takes a second or two for the first look at a long record."""
        grown = self._drawn is not None and self._drawn.position < self._store.last_position()
        if self._drawn is None:
            self._begin()
        elif self.complete and grown and not self.fault:
            self.complete = False
            self.advance(0.0 if self._fold is None else _LONGEST_GROWTH)
        assert self._drawn is not None
        return self._drawn

    def whole(self) -> Drawn:
        """Return the whole picture. Takes half a minute for the first time of a record of a million entries."""
        self.now()
        self.advance(float("inf"))
        return self.now()

    def advance(self, seconds: float) -> bool:
        """Read on for some time. Return whether all is read."""
        if self.complete:
            return True
        if self._fold is None:
            self._fold = self._new_fold()
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._read_some(self._fold):
            pass
        return self.complete

    def _begin(self) -> None:
        self._drawn = read_kept(self._store)
        self.complete = self._drawn is not None
        if self._drawn is None and self._store.last_position() - self._store.first_position() < SHORT:
            self.advance(float("inf"))
        if self._drawn is None:
            self._drawn = self._first_look()

    def _read_some(self, fold: OverviewFold) -> bool:
        """Read on a little. Return whether there is more."""
        before, began = fold.position, time.thread_time()
        try:
            for _ in range(AT_A_TIME):
                fold.apply(next(self._entries))
        except StopIteration:
            if fold.position == before and before >= self._store.last_position():
                self._finish(fold)
            else:
                self._entries = self._store.scan(fold.position)
        except KerfError as error:
            self.fault = f"{error.message}. {error.hint}"
            self._finish(fold)
        self._spent += time.thread_time() - began
        if not self.complete and self._spent > self._allowed():
            told = f"{LimitReached.code}: reading the record took longer than one of its size may"
            self.fault = f"{told}. This is it up to position {fold.position}; {NO_LIMITS} lifts the limit"
            self._finish(fold)
        return not self.complete

    def _finish(self, fold: OverviewFold) -> None:
        self.complete, self._drawn = True, fold.drawn()
        if not self.fault and fold.position > SHORT and time.monotonic() > self._keep_again:
            self._keep_again = time.monotonic() + KEPT_EVERY
            keep(self._store, self._drawn)
            self._drawn = close_together(self._drawn)

    def _first_look(self) -> Drawn:
        """Return what entries that are not of pods tell. What is damaged is told once all is read."""
        fold = self._new_fold()
        try:
            for entry in without_pods(self._store):
                fold.apply(entry)
        except (KerfError, *UNDECODABLE):
            fold = self._new_fold()
        return fold.drawn()

    def _new_fold(self) -> OverviewFold:
        store = self._store
        return OverviewFold(timeline_from_base(store), Blobs(store.blob).shape, base_as_entries(store))


def without_pods(store: AnyStore) -> Iterator[Entry]:
    """Yield the entries that are not of pods. Of a database they come without a look at the chain."""
    if not isinstance(store, ChainedStore):
        yield from store.scan(only=TYPES.keys() - _OF_PODS)
        return
    marks, after = ", ".join("?" * len(_OF_PODS)), 0
    while True:
        with store.session() as session:
            rows = session.run(
                "SELECT {position}, CAST(state AS {blob}) FROM stored_events "
                f"WHERE {{position}} > ? AND topic NOT IN ({marks}) ORDER BY {{position}} LIMIT ?",
                after, *sorted(_OF_PODS), _PER_PAGE,
            )  # fmt: skip
        yield from (CODEC.decode(bytes(encoded)) for _, encoded in rows)
        if len(rows) < _PER_PAGE:
            return
        after = rows[-1][0]
