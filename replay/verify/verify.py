"""Verify a record: decide every turn again, and compare byte for byte.

For each turn the state is the fold of all entries before it. Today's engine is given the recorded observations and must
come to what the record holds. A difference is reported as a `Divergence`. The next turn goes on from the recorded
entries, so that one changed decision does not make all later turns differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from time import perf_counter

from msgspec.structs import replace

import kerf
from kerf.engine.errors import KerfError
from kerf.engine.record.base import Base
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import (
    INCONSISTENT,
    BlobMissing,
    EntryUndecodable,
    RecordCorrupt,
    StoreError,
    UpcastFailed,
)
from kerf.engine.record.observations import RecordCut, RecordStarted
from kerf.engine.record.store import Store
from kerf.engine.state.load import PROGRESS_EVERY, Progress, beginning
from kerf.engine.state.state import State
from kerf.replay.errors import BeginningMissing
from kerf.replay.verify.decide_again import (
    VERSIONS,
    copy,
    decide_again,
    fold,
    is_observed,
    settle,
    versions_differ,
    why_unsupported,
)
from kerf.replay.verify.divergence import divergence, refusal
from kerf.replay.verify.report import Corruption, Divergence, Report, UnsupportedTurns

MAX_DIVERGENCES_KEPT = 100
"""At most this many divergences are kept in full; all are counted."""


def verify(store: Store, *, progress: Progress | None = None, keep: int = MAX_DIVERGENCES_KEPT) -> Report:
    """Check all that is stored, and decide the whole record again, from its base if it has one.

    The check comes first: header, both ends, chain, every blob. After a fault the turns before it are still decided.
    Raises BeginningMissing (KERF204) for a part of a record without a base. What else is wrong with the record stands
    in the report.
    """
    started = perf_counter()
    base = store.base()
    verifier = _Verifier(store, keep, base)
    fault = _fault_of(store)
    try:
        for turn in turns(_reported(store.scan(base.position if base is not None else 0), progress)):
            verifier.turn(turn)
        verifier.check_cut()
    except StoreError as error:
        position = error.position or verifier.entries + 1
        fault = fault or Corruption(error.code, position, error.message)
    return verifier.report(fault, perf_counter() - started)


def _fault_of(store: Store) -> Corruption | None:
    """What `Store.check` finds; an entry that this version cannot read is left to the turns."""
    try:
        store.check()
    except (EntryUndecodable, UpcastFailed):
        return None
    except StoreError as error:
        return Corruption(error.code, error.position, error.message)
    return None


def turns(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Group the entries by turn. A turn that is cut off by an error of the source is left out."""
    for _, turn in groupby(entries, key=lambda entry: entry.turn):
        yield list(turn)


def _reported(entries: Iterator[Entry], progress: Progress | None) -> Iterator[Entry]:
    for entry in entries:
        if progress is not None and entry.position % PROGRESS_EVERY == 0:
            progress(entry.position)
        yield entry


class _Verifier:
    """Decides turns on the state `trial`.

    While nothing differs, `trial` is also what the record says. From the first turn that differs or cannot be decided,
    `truth` is kept too: it is folded from recorded entries only.
    """

    def __init__(self, store: Store, keep: int, base: Base | None) -> None:
        self.store, self.keep, self.base = store, keep, base
        self.trial = beginning(store)
        if base is not None:
            settle(self.trial)
        self.cuts: list[RecordCut] = []  # all that are announced for this base
        self.kept = 0
        self.truth: State | None = None
        self.engine_recorded = base.engine if base is not None else ""
        self.versions: dict[str, int] = {}  # decider → version of its latest recorded decision
        self.entries = self.turns = self.observations = self.decisions = self.claim_events = 0
        self.diverged = 0
        self.divergences: list[Divergence] = []
        self.unsupported: dict[tuple[str, str], UnsupportedTurns] = {}

    def turn(self, recorded: list[Entry]) -> None:
        self._note(recorded)
        unsupported = why_unsupported(recorded)
        if unsupported is not None:
            self._cannot(recorded, *unsupported)
            return
        try:
            remade = decide_again(self.trial, recorded)
        except BlobMissing as error:
            self._cannot(recorded, "missing-blob", error.message)
            return
        except StoreError:
            raise  # the record is damaged
        except (KerfError, *INCONSISTENT) as error:
            if not self._newer(recorded):
                self._differs(recorded, refusal(recorded, recorded[0], error))
            return
        if _same(recorded, remade):
            self._counted(recorded)
            if self.truth is not None:
                fold(self.truth, recorded)
            return
        older = sorted((d, v) for d, v in self.versions.items() if v != VERSIONS.get(d))
        if older:  # claim events carry no version: those of a record of other deciders may well differ
            self._cannot(recorded, "older-deciders", versions_differ(*older[0]))
            return
        if self._newer(recorded):
            return
        self._counted(recorded)
        self._differs(recorded, divergence(recorded, remade))

    def _newer(self, recorded: list[Entry]) -> bool:
        """Whether a turn differs because entries of a newer kerf stand before it: nothing can be said of it then."""
        newer = self.trial.facts.unknown > 0
        if newer:
            self._cannot(recorded, "newer-entries", "entries before it are of a newer kerf")
        return newer

    def _note(self, recorded: list[Entry]) -> None:
        first = recorded[0]
        after = self.base.position if self.base is not None else 0
        if not self.entries and first.position != after + 1:
            raise BeginningMissing(
                "the record begins in the middle: what was before is not known",
                where=f"position {first.position}",
                hint="Verify the whole record, or export it from its beginning",
            )
        self.entries += len(recorded)
        self.turns += 1
        self.observations += sum(map(is_observed, recorded))
        for entry in recorded:
            if isinstance(entry.payload, Decision):
                self.versions[entry.payload.decider] = entry.payload.version
            elif isinstance(entry.payload, RecordStarted):
                self.engine_recorded = entry.payload.engine
            elif isinstance(entry.payload, RecordCut) and entry.payload.base == after:
                self.cuts.append(entry.payload)

    def check_cut(self) -> None:
        """Check that only what the record itself announces was removed from its beginning. Raises RecordCorrupt
        (KERF109).

        The announced chain value vouches for all removed entries, the announced history value for the kept ones.
        """
        base, kept = self.base, self.store.kept()
        if base is not None and blake2b(base.state, digest_size=16).hexdigest() != base.digest:
            raise RecordCorrupt("the state that the record begins with was changed", position=base.position)
        if base is None or kept is None:
            return
        self.kept = kept.entries
        if not self.cuts:
            raise RecordCorrupt(
                "the record was cut here, and no entry after it announces that", position=base.position
            )  # fmt: skip
        # The latest may not have begun yet: it is announced before anything goes, and kerf may have been killed there.
        cuts = [cut for cut in self.cuts if (cut.chain, cut.state) == (base.chain.hex(), base.digest)]
        if not cuts:
            raise RecordCorrupt("the cut is not the one that the record announces", position=base.position)
        if (kept.after, kept.history) not in [(cut.after, cut.history) for cut in cuts]:
            raise RecordCorrupt("what is kept from before the cut is not all that was kept", position=kept.after + 1)

    def _counted(self, recorded: list[Entry]) -> None:
        """Count entries that were decided again and compared."""
        for entry in recorded:
            if isinstance(entry.payload, Decision):
                self.decisions += 1
            elif not is_observed(entry):
                self.claim_events += 1

    def _differs(self, recorded: list[Entry], divergence: Divergence) -> None:
        self.diverged += 1
        if len(self.divergences) < self.keep:
            self.divergences.append(replace(divergence, engine_recorded=self.engine_recorded))
        self._go_on(recorded)

    def _cannot(self, recorded: list[Entry], reason: str, detail: str) -> None:
        first, before = recorded[0].position, self.unsupported.get((reason, detail))
        self.unsupported[reason, detail] = UnsupportedTurns(
            reason=reason,
            detail=detail,
            first=before.first if before else first,
            last=first,
            count=before.count + 1 if before else 1,
        )
        self._go_on(recorded)

    def _go_on(self, recorded: list[Entry]) -> None:
        """Go on from the recorded entries."""
        if self.truth is None:
            self.truth = beginning(self.store)
            for earlier in turns(self.store.scan(self.truth.facts.position, recorded[0].position - 1)):
                fold(self.truth, earlier)
        refused = fold(self.truth, recorded)
        for entry, error in refused if not self.truth.facts.unknown else ():
            self.diverged += 1
            if len(self.divergences) < self.keep:
                divergence = refusal(recorded, entry, error)
                self.divergences.append(replace(divergence, engine_recorded=self.engine_recorded))
        self.trial = copy(self.truth)

    def report(self, fault: Corruption | None, seconds: float) -> Report:
        return Report(
            record=self.trial.facts.record,
            engine_recorded=self.engine_recorded,
            engine=kerf.__version__,
            last=self.trial.facts.position,
            base=self.base.position if self.base is not None else 0,
            base_at=self.base.at if self.base is not None else 0,
            kept=self.kept,
            entries=self.entries,
            turns=self.turns,
            observations=self.observations,
            decisions=self.decisions,
            claim_events=self.claim_events,
            diverged=self.diverged,
            divergences=tuple(self.divergences),
            unsupported=tuple(self.unsupported.values()),
            fault=fault,
            imported=self.trial.facts.imported,
            seconds=seconds,
        )


def _same(recorded: Sequence[Entry], remade: Sequence[Entry]) -> bool:
    if len(recorded) != len(remade):
        return False
    return all(_equal(old, new) for old, new in zip(recorded, remade, strict=True))


def _equal(old: Entry, new: Entry) -> bool:
    if old.payload is new.payload:  # an observation was given to the engine as it is: its envelope may differ
        return old == new
    return CODEC.encode(old) == CODEC.encode(new)
