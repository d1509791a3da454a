"""Verify a record: decide every turn again, and compare byte for byte.

For each turn the state is the fold of all entries before it. Today's engine is given the recorded observations and must
come to what the record holds. A difference is reported as a `Divergence`. The next turn goes on from the recorded
entries, so that one changed decision does not make all later turns differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from time import perf_counter, process_time

from msgspec import Struct
from msgspec.structs import replace

import kerf
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import EntryUndecodable, RecordCorrupt, StoreError, UpcastFailed
from kerf.engine.record.observations import RecordCut
from kerf.engine.record.store import Store
from kerf.engine.state.load import Progress, beginning
from kerf.replay.errors import BeginningMissing
from kerf.replay.verify.declared_changes import NOTHING_DECLARED, DeclaredChanges
from kerf.replay.verify.report import Corruption, Report
from kerf.replay.verify.segments import Cutter, Disagreement, parts
from kerf.replay.verify.stored_snapshots import StoredSnapshots
from kerf.replay.verify.verifier import Heard, Verifier, turns
from kerf.replay.workers import Workers

MAX_DIVERGENCES_KEPT = 100
"""At most this many divergences are kept in full; all are counted."""
LONG = 50_000
"""Entries of a record whose bytes another process checks meanwhile."""
LOOK_FOR = 0.1
"""Seconds of CPU time after which one process looks how long the rest will take."""


def verify(
    store: Store,
    *,
    progress: Progress | None = None,
    keep: int = MAX_DIVERGENCES_KEPT,
    changes: DeclaredChanges = NOTHING_DECLARED,
    workers: Workers | None = None,
) -> Report:
    """Check all that is stored, and decide the whole record again, from its base if it has one.

    What differs as `changes` declare it is no divergence; without them a decision of an older VERSION is unsupported.

    With `workers`, other processes help with what takes longer than `alone_for`; the report is the same. After a
    fault the turns before it are still decided. Raises BeginningMissing (KERF204) for a part of a record without a
    base. What else is wrong with the record stands in the report.
    """
    started = perf_counter()
    try:
        report = _Run(store, keep, progress, changes).all(workers)
    except Disagreement:
        report = _Run(store, keep, progress, changes).all(None)
    return replace(report, seconds=perf_counter() - started)


class Check(Struct, frozen=True):
    """Finds what `Store.check` finds. An entry that this version cannot read is left to the turns."""

    def run(self, store: Store) -> Corruption | None:
        try:
            store.check()
        except (EntryUndecodable, UpcastFailed):
            return None
        except StoreError as error:
            return Corruption(error.code, error.position, error.message)
        return None


class _Run:
    """One run over a record."""

    def __init__(self, store: Store, keep: int, progress: Progress | None, changes: DeclaredChanges) -> None:
        self._store, self._keep, self._progress, self._changes = store, keep, progress, changes
        self._base = base = store.base()
        self._first = base.position if base is not None else 0
        self._heard = Heard(base.engine if base is not None else "")
        self._verifier = Verifier(store, lambda: beginning(store), keep, self._heard, changes, settled=base is None)
        self._found = self._verifier.found
        self._cuts: list[RecordCut] = []  # all that are announced for this base
        self._kept = 0
        self._snapshots = StoredSnapshots(store)
        self._last = self._first

    def all(self, workers: Workers | None) -> Report:
        """Verify the whole record."""
        checked = workers.submit(Check()) if workers is not None and self._length() > LONG else None
        fault = Check().run(self._store) if checked is None else None
        error: StoreError | None = None
        try:
            self._decide(self._noted(turns(self._store.scan(self._first))), workers)
            self._check_cut()
            self._snapshots.check(self._last)
        except StoreError as raised:
            error = raised
        fault = fault if checked is None else checked.result()
        if error is not None:
            fault = fault or Corruption(error.code, error.position or self._found.entries + 1, error.message)
        return self._report(fault)

    def _length(self) -> int:
        try:
            return self._store.last_position() - self._first
        except StoreError:  # the turns before the damage tell
            return 0

    def _decide(self, recorded: Iterator[list[Entry]], workers: Workers | None) -> None:
        """Decide all turns: alone at first, and with workers what takes long. Raises StoreError."""
        began = process_time()
        for turn in recorded:
            try:
                self._verifier.turn(turn)
            finally:
                self._last = self._verifier.trial.facts.position
            self._snapshots.compare(self._verifier.recorded)
            self._tell_progress()
            if workers is not None and self._left(process_time() - began) > workers.alone_for:
                self._decide_together(recorded, workers)

    def _left(self, took: float) -> float:
        """Return the seconds of CPU time that the rest will take after so many; 0 while these tell too little."""
        done = self._last - self._first
        return took * (self._length() - done) / done if took > LOOK_FOR else 0.0

    def _decide_together(self, recorded: Iterator[list[Entry]], workers: Workers) -> None:
        cutter = Cutter(self._verifier.recorded, self._heard, self._keep, self._changes, self._snapshots.compare)
        for part in parts(cutter.segments(recorded), workers):
            self._found.add(part.found, self._keep)
            self._verifier.declared.add(part.declared)
            self._last = part.position
            self._tell_progress()
            if part.fault is not None:
                raise part.fault
        if cutter.fault is not None:
            raise cutter.fault

    def _tell_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._last)

    def _noted(self, recorded: Iterator[list[Entry]]) -> Iterator[list[Entry]]:
        """Give the turns, and note what they say of the record's beginning."""
        for number, turn in enumerate(recorded):
            if not number and turn[0].position != self._first + 1:
                raise BeginningMissing(
                    "the record begins in the middle: what was before is not known",
                    where=f"position {turn[0].position}",
                    hint="Verify the whole record, or export it from its beginning",
                )
            for entry in turn:
                if isinstance(entry.payload, RecordCut) and entry.payload.base == self._first:
                    self._cuts.append(entry.payload)
            yield turn

    def _check_cut(self) -> None:
        """Check that only what the record itself announces was removed from its beginning. Raises RecordCorrupt
        (KERF109).

        The announced chain value vouches for all removed entries, the announced history value for the kept ones.
        """
        base, kept = self._base, self._store.kept()
        if base is not None and blake2b(base.state, digest_size=16).hexdigest() != base.digest:
            raise RecordCorrupt("the state that the record begins with was changed", position=base.position)
        if base is None or kept is None:
            return
        self._kept = kept.entries
        if not self._cuts:
            raise RecordCorrupt(
                "the record was cut here, and no entry after it announces that", position=base.position
            )  # fmt: skip
        # The latest may not have begun yet: it is announced before anything goes, and kerf may have been killed there.
        cuts = [cut for cut in self._cuts if (cut.chain, cut.state) == (base.chain.hex(), base.digest)]
        if not cuts:
            raise RecordCorrupt("the cut is not the one that the record announces", position=base.position)
        if (kept.after, kept.history) not in [(cut.after, cut.history) for cut in cuts]:
            raise RecordCorrupt("what is kept from before the cut is not all that was kept", position=kept.after + 1)

    def _report(self, fault: Corruption | None) -> Report:
        base, found, facts = self._base, self._found, self._verifier.recorded.facts
        declared, engine = self._verifier.declared, self._heard.engine
        return Report(
            record=facts.record,
            engine_recorded=engine,
            engine=kerf.__version__,
            last=self._last,
            base=base.position if base is not None else 0,
            base_at=base.at if base is not None else 0,
            kept=self._kept,
            entries=found.entries,
            turns=found.turns,
            observations=found.observations,
            decisions=found.decisions,
            claim_events=found.claim_events,
            diverged=found.diverged,
            divergences=tuple(found.divergences),
            unsupported=tuple(found.unsupported.values()),
            fault=fault,
            imported=facts.imported,
            snapshots=self._snapshots.compared,
            declared=declared.met(),
            differences=tuple(replace(different, engine_recorded=engine) for different in declared.differences),
            seconds=0.0,
        )
