"""The record that the explorer shows. It is opened read-only in a thread of its own, which answers one question at a
time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from shlex import quote
from typing import TypeVar

import msgspec

from kerf.adapters.cli.garbage import leave_what_is_kept
from kerf.adapters.cli.named_record import SHORT, named_record
from kerf.adapters.store.files.golden import GoldenStore
from kerf.adapters.store.open import AnyStore, open_record
from kerf.adapters.web.limits import QuestionLimits, limits_of
from kerf.adapters.web.timeline.near_states import NearStates
from kerf.adapters.web.timeline.picture import Picture
from kerf.engine.errors import KerfError
from kerf.engine.passwords import without_password
from kerf.engine.state.evolve import evolve
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.projections.cluster_status.structs import ClusterStatus
from kerf.replay.history.indexed_timeline import told_of
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.time_travel.moments import Moment, moment_of
from kerf.replay.time_travel.status import status_of

Answer = TypeVar("Answer")
NEAR = 5_000
"""So many entries are folded sooner than a snapshot is read."""
MOST_MOMENTS = 100
MOST_STATES = 2
"""So many states are kept: that at the cursor, and another one that it is compared with."""


class RecordReader:
    """Reads one record. `ask` runs a question with this reader in its thread: databases want to be used in the thread
    that opened them. `limits` are those of a question. `picture` is what is drawn of its whole time, and `near` keeps
    states of all of it.
    """

    def __init__(self, record: str, *, short: int = SHORT) -> None:
        """`opened` is the record as it was named; `record` is what of it may be shown, and `quoted` that for a shell.
        One of fewer than `short` entries is read anew for each question about a name. Raises what `open_record`
        raises, and LimitReached (KERF128)."""
        self.opened, self.record = record, without_password(record)
        self.quoted = quote(self.record)
        self._thread = ThreadPoolExecutor(1, "explorer")
        self._states: list[State] = []  # the latest that were asked for
        self._dropped: list[State] = []  # to be freed once the answer is sent
        self._status: ClusterStatus | None = None  # at the end
        self._moments: tuple[int, dict[str, Moment]] | None = None  # by their texts, of a record up to a position
        self._named: NamedEntries | None = None
        self._names: tuple[int, bytes] | None = None  # up to a position
        self._long, self._short = False, short
        self._indexing: Future[None] | None = None
        self.limits = limits_of(record)
        try:
            self.store: AnyStore = self._thread.submit(self._open).result()
        except BaseException:
            self._end()
            raise
        self.picture = Picture(self.store, self.limits.seconds)
        self.near = NearStates(self.store, self.limits.seconds)

    def close(self) -> None:
        self._thread.submit(self.store.close).result()
        self._end()

    def _end(self) -> None:
        self._thread.shutdown()
        self.limits.close()

    async def ask(self, question: Callable[[RecordReader], Answer]) -> Answer:
        """Answer a question. Raises what it raises, and LimitReached (KERF128)."""
        return await asyncio.wrap_future(self._thread.submit(self._answer, question))

    def _answer(self, question: Callable[[RecordReader], Answer]) -> Answer:
        with self.limits.question():
            return question(self)

    async def tidy(self) -> None:
        """Free what the last answer was the last to need. To free a state takes a tenth of the time of an answer, and
        nothing else runs meanwhile: so it comes after it."""
        if self._dropped:
            await asyncio.wrap_future(self._thread.submit(self._dropped.clear))

    def _open(self) -> AnyStore:
        with self.limits.question():
            store = open_record(self.opened)
            with suppress(KerfError):  # told by whoever reads it
                self._long = store.last_position() - store.first_position() >= self._short
            return store

    async def indexed(self) -> None:
        """Wait until what a name stands for is found quickly. For a long record that takes a while, the first time; in
        a thread of its own, so that other questions are answered meanwhile. Raises LimitReached (KERF128)."""
        self.begin_index()
        if self._indexing is not None:
            await asyncio.shield(asyncio.wrap_future(self._indexing))

    def begin_index(self) -> None:
        """Begin what `indexed` waits for, unless the record was short as it was opened."""
        if self._long and self._indexing is None:
            self._indexing = Future()
            made = self._indexing, limits_of(self.opened)
            threading.Thread(target=self._index, args=made, name="explorer-index", daemon=True).start()

    def _index(self, told: Future[None], limits: QuestionLimits) -> None:
        try:
            with limits.question(memory=False), closing(open_record(self.opened)) as store:
                found = named_record(store, store.last_position(), short=self._short)
                if found is not None and not isinstance(self.store, GoldenStore):  # which has no index
                    told_of(store, found)  # folded once for all questions, with its histories
                    self._named = found.read_from(self.store)
                    leave_what_is_kept()
            told.set_result(None)
        except BaseException as error:
            told.set_exception(error)
        finally:
            limits.close()

    # ── in its thread ──────────────────────────────────────────────────────────────────────────────────────────

    def named(self, position: int) -> NamedEntries | None:
        """Return what finds the entries of a long record up to a position by their names. It is kept."""
        if self._named is None or self._named.until < position:
            known = self._named.parts if self._named is not None else ()
            self._named = named_record(self.store, self.store.last_position(), short=self._short, known=known)
        return self._named.up_to(position) if self._named is not None else None

    def names(self, read: Callable[[AnyStore, NamedEntries | None], list[str]]) -> list[str]:
        """Return the names in the record, which `read` reads, with its index if it is long. They are kept, packed,
        until more is written."""
        last = self.store.last_position()
        if self._names is None or self._names[0] != last:
            self._names = last, msgspec.msgpack.encode(read(self.store, self.named(last)))
        return msgspec.msgpack.decode(self._names[1], type=list[str])

    def moment(self, when: str) -> Moment:
        """Return the moment that a text names, "" for the end. Raises PositionUnknown (KERF202)."""
        last = self.store.last_position()
        if self._moments is None or self._moments[0] != last or len(self._moments[1]) > MOST_MOMENTS:
            self._moments = last, {}
        known = self._moments[1]
        if when not in known:
            known[when] = moment_of(self.store, when or "end", self.near.around)
        return known[when]

    def state(self, moment: Moment) -> State:
        """Return the state at a moment. The latest ones are kept: asking of a moment twice loads once, and a later one
        that is near is folded from there."""
        self._dropped.clear()
        position = moment.position
        near = [state for state in self._states if 0 <= position - state.facts.position <= NEAR]
        known = max(near, key=lambda state: state.facts.position, default=None)
        self._states = [state for state in self._states if state is not known]  # gone, if what follows fails
        if known is None:
            known = load(self.store, position)
        else:
            for entry in self.store.scan(known.facts.position, position):
                evolve(known, entry)
        self._states.append(known)
        while len(self._states) > MOST_STATES:
            self._dropped.append(self._states.pop(0))
        return known

    @contextmanager
    def state_then(self, moment: Moment) -> Iterator[State]:
        """Give the state at a moment as `state_at` does: at the time that was asked for. What looks at it must not
        change it."""
        state = self.state(moment)
        at = state.facts.at
        state.facts.at = max(at, moment.at)
        try:
            yield state
        finally:
            state.facts.at = at

    def status_at_end(self) -> ClusterStatus:
        """Return the status at the end of the record. It is kept until more is written."""
        if self._status is None or self._status.position != self.store.last_position():
            end = self.moment("")
            self._status = status_of(self.store, self.state(end), end.at)
        return self._status
