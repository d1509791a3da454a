"""Decide turns again one after the other, and collect what was found: of a whole record, or of one segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from kerf.engine.errors import KerfError
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import INCONSISTENT, BlobMissing, StoreError
from kerf.engine.record.observations import RecordStarted
from kerf.engine.record.store import Store
from kerf.engine.state.state import State
from kerf.replay.verify.decide_again import copy, decide_again, fold, is_observed, settle, why_unsupported
from kerf.replay.verify.declared_changes import DeclaredChanges
from kerf.replay.verify.declared_turns import DeclaredTurns
from kerf.replay.verify.divergence import divergence, refusal
from kerf.replay.verify.report import Divergence, UnsupportedTurns


def turns(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Group the entries by turn. A turn that is cut off by an error of the source is left out."""
    for _, turn in groupby(entries, key=lambda entry: entry.turn):
        yield list(turn)


class Findings(Struct, kw_only=True):
    """What was found in a part of a record (see `Report`). `unsupported` goes by reason and detail."""

    entries: int = 0
    turns: int = 0
    observations: int = 0
    decisions: int = 0
    claim_events: int = 0
    diverged: int = 0
    divergences: list[Divergence] = field(default_factory=list)
    unsupported: dict[tuple[str, str], UnsupportedTurns] = field(default_factory=dict)

    def add(self, later: Findings, keep: int) -> None:
        """Add what was found in the part that follows. At most `keep` divergences are kept."""
        for name in ("entries", "turns", "observations", "decisions", "claim_events", "diverged"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.divergences += later.divergences[: max(0, keep - len(self.divergences))]
        for unsupported in later.unsupported.values():
            self.add_unsupported(unsupported)

    def add_unsupported(self, turns: UnsupportedTurns) -> None:
        key = turns.reason, turns.detail
        before = self.unsupported.get(key)
        if before is not None:
            turns = replace(turns, first=before.first, count=before.count + turns.count)
        self.unsupported[key] = turns


class Heard(Struct):
    """What recorded entries say of those who wrote them: the engine's version, and of each decider the VERSION of its
    latest decision."""

    engine: str = ""
    versions: dict[str, int] = field(default_factory=dict)

    def listen(self, turn: Iterable[Entry]) -> None:
        for entry in turn:
            if isinstance(entry.payload, Decision):
                self.versions[entry.payload.decider] = entry.payload.version
            elif isinstance(entry.payload, RecordStarted):
                self.engine = entry.payload.engine


class Verifier:
    """Decides turns on the state `trial`.

    While nothing differs, `trial` is also what the record says. From the first turn that differs or cannot be decided,
    `truth` is kept too: it is folded from recorded entries only.
    """

    def __init__(
        self,
        store: Store,
        begin: Callable[[], State],
        keep: int,
        heard: Heard,
        changes: DeclaredChanges,
        *,
        settled: bool = True,
    ) -> None:
        """`begin` gives the state before the first turn, anew with each call. It is `settled` as a turn leaves it, or
        only folded. `heard` is of what was before, and is kept up to date."""
        self.store, self._begin, self.keep, self.heard = store, begin, keep, heard
        self.trial = begin()
        if not settled:
            settle(self.trial)
        self.truth: State | None = None
        self.found = Findings()
        self.declared = DeclaredTurns(changes, keep)

    @property
    def recorded(self) -> State:
        """The fold of the recorded entries so far."""
        return self.trial if self.truth is None else self.truth

    def turn(self, recorded: list[Entry]) -> None:
        self._note(recorded)
        unsupported = why_unsupported(recorded, self.declared.changes.declares)
        if unsupported is not None:
            self._cannot(recorded, *unsupported)
            return
        try:
            remade = self.declared.as_recorded(decide_again(self.trial, recorded), self.heard.versions)
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
        if self.declared.differs(recorded, remade, self.heard.versions):
            self._counted(recorded)
            self._go_on(recorded)
            return
        older = self.declared.undeclared(recorded, remade, self.heard.versions)
        if older:  # claim events carry no version: those of a record of other deciders may well differ
            self._cannot(recorded, "older-deciders", older)
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
        self.found.entries += len(recorded)
        self.found.turns += 1
        self.found.observations += sum(map(is_observed, recorded))
        self.heard.listen(recorded)

    def _counted(self, recorded: list[Entry]) -> None:
        """Count entries that were decided again and compared."""
        for entry in recorded:
            self.declared.count(entry, self.heard.versions)
            if isinstance(entry.payload, Decision):
                self.found.decisions += 1
            elif not is_observed(entry):
                self.found.claim_events += 1

    def _differs(self, recorded: list[Entry], divergence: Divergence) -> None:
        self._diverged(divergence)
        self._go_on(recorded)

    def _diverged(self, divergence: Divergence) -> None:
        self.found.diverged += 1
        if len(self.found.divergences) < self.keep:
            self.found.divergences.append(replace(divergence, engine_recorded=self.heard.engine))

    def _cannot(self, recorded: list[Entry], reason: str, detail: str) -> None:
        first = recorded[0].position
        self.found.add_unsupported(UnsupportedTurns(reason=reason, detail=detail, first=first, last=first, count=1))
        self._go_on(recorded)

    def _go_on(self, recorded: list[Entry]) -> None:
        """Go on from the recorded entries."""
        if self.truth is None:
            self.truth = self._begin()
            for earlier in turns(self.store.scan(self.truth.facts.position, recorded[0].position - 1)):
                fold(self.truth, earlier)
        refused = fold(self.truth, recorded)
        for entry, error in refused if not self.truth.facts.unknown else ():
            self._diverged(refusal(recorded, entry, error))
        self.trial = copy(self.truth)


def _same(recorded: Sequence[Entry], remade: Sequence[Entry]) -> bool:
    if len(recorded) != len(remade):
        return False
    return all(_equal(old, new) for old, new in zip(recorded, remade, strict=True))


def _equal(old: Entry, new: Entry) -> bool:
    if old.payload is new.payload:  # an observation was given to the engine as it is: its envelope may differ
        return old == new
    return CODEC.encode(old) == CODEC.encode(new)
