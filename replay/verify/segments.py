"""Verify a record in segments, which other processes decide at the same time.

This process folds the recorded entries, and gives each segment the state that it begins with. So no worker believes a
state that was not made of the record here. The worker decides the segment's turns on it, and says to which state they
lead: that must be the one with which the next segment begins. By induction, all segments together prove what one run
over the whole record does (docs/adr/0010).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from msgspec import Struct

from kerf.engine.errors import KerfError, summary_of
from kerf.engine.record.decisions import Decision, ProposedMovesResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import INCONSISTENT, StoreError
from kerf.engine.record.store import Store
from kerf.engine.state import snapshot
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import State
from kerf.replay.verify.decide_again import fold
from kerf.replay.verify.declared_changes import DeclaredChanges
from kerf.replay.verify.declared_turns import DeclaredTurns
from kerf.replay.verify.verifier import Findings, Heard, Verifier, turns
from kerf.replay.workers import Workers

SEGMENT_ENTRIES, SEGMENT_DECISIONS = 10_000, 60
"""A segment ends with the turn that reaches one of these."""
LONG_PASS = 20
"""So many decisions stands a disruption pass for that used up its steps: such passes come one after the other, and the
segments of a record are to take about as long."""
WAITING_PER_JOB = 3
"""Segments that wait or are under way, for each worker: their states are in memory."""


class Part(Struct):
    """What came of a segment. `digest` is that of the state to which its turns lead. `fault` ended it early."""

    found: Findings
    declared: DeclaredTurns
    position: int
    digest: str
    fault: StoreError | None = None


class Segment(Struct, frozen=True):
    """The turns after position `after` up to `until`. `state` is the encoded state before them, `heard` what was heard
    before."""

    after: int
    until: int
    state: bytes
    heard: Heard
    keep: int
    changes: DeclaredChanges

    def run(self, store: Store) -> Part:
        """Decide the turns. Raises Disagreement if nothing can begin with the state."""
        blobs, fault = Blobs(store.blob), None
        try:
            verifier = Verifier(
                store,
                lambda: snapshot.decode(self.state, blobs),
                self.keep,
                self.heard,
                self.changes,
                settled=False,
            )
        except (KerfError, *INCONSISTENT) as error:
            raise Disagreement(f"the state at {self.after} is none to begin with: {summary_of(error)}") from error
        try:
            for turn in turns(store.scan(self.after, self.until)):
                verifier.turn(turn)
        except StoreError as error:
            fault = error
        reached, digest = verifier.trial.facts.position, snapshot.digest(verifier.recorded)
        return Part(verifier.found, verifier.declared, reached, digest, fault)


class Disagreement(Exception):
    """Segments do not lead to one another. One process alone has to say what is wrong."""


class Cutter:
    """Cuts recorded turns into segments, and folds them. `fault` is what ended the reading."""

    def __init__(
        self, state: State, heard: Heard, keep: int, changes: DeclaredChanges, told: Callable[[State], None]
    ) -> None:
        """`state` is the fold of what was before, and becomes that of all turns; `told` gets it after each."""
        self.state, self.heard, self.keep, self.changes = state, heard, keep, changes
        self._told = told
        self.fault: StoreError | None = None

    def segments(self, recorded: Iterable[list[Entry]]) -> Iterator[tuple[Segment, str]]:
        """Give each segment, with the digest of the state to which its entries lead."""
        begin, entries, decisions = self._begin(), 0, 0
        try:
            for turn in recorded:
                fold(self.state, turn)
                self._told(self.state)
                self.heard.listen(turn)
                entries += len(turn)
                decisions += sum(_weight(entry.payload) for entry in turn)
                if entries >= SEGMENT_ENTRIES or decisions >= SEGMENT_DECISIONS:
                    yield self._segment(*begin)
                    begin, entries, decisions = self._begin(), 0, 0
        except StoreError as error:
            self.fault = error
        if entries:
            yield self._segment(*begin)

    def _begin(self) -> tuple[int, bytes, Heard]:
        heard = Heard(self.heard.engine, dict(self.heard.versions))
        return self.state.facts.position, snapshot.encode(self.state)[0], heard

    def _segment(self, after: int, state: bytes, heard: Heard) -> tuple[Segment, str]:
        segment = Segment(after, self.state.facts.position, state, heard, self.keep, self.changes)
        return segment, snapshot.digest(self.state)


def _weight(payload: object) -> int:
    """How many decisions an entry stands for."""
    if not isinstance(payload, Decision):
        return 0
    result = payload.result
    return LONG_PASS if isinstance(result, ProposedMovesResult) and result.exhausted else 1


def parts(segments: Iterable[tuple[Segment, str]], workers: Workers) -> Iterator[Part]:
    """Let workers decide the segments, and give what came of each, in order. Raises Disagreement, and what a worker
    raises."""
    under_way: deque[tuple[Future[Part], str]] = deque()
    for segment, digest in segments:
        under_way.append((workers.submit(segment), digest))
        while len(under_way) > WAITING_PER_JOB * workers.jobs:
            yield _part(*under_way.popleft())
    while under_way:
        yield _part(*under_way.popleft())


def _part(future: Future[Part], digest: str) -> Part:
    part = future.result()
    if part.fault is None and part.digest != digest:
        raise Disagreement(f"the segment up to {part.position} leads to another state than its entries")
    return part
