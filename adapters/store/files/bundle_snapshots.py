"""Snapshots of the state in a bundle, so that any moment of a long one is there at once.

Whoever exports a bundle folds its entries, and takes a snapshot now and then. A snapshot is a cache here as well: one
of another version of kerf's state is not used. In a stranger's bundle it may be false, which `kerf verify` finds
(docs/security.md).
"""

from __future__ import annotations

import msgspec

from kerf.adapters.store.read_only import Source
from kerf.engine.errors import KerfError
from kerf.engine.record.base import Base
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import INCONSISTENT
from kerf.engine.state import snapshot
from kerf.engine.state.base import restore
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State

SPACING, WIDEST = 20_000, 80_000
"""Entries between two snapshots: at first, and at most."""
MOST = 24
"""Where there are more, every other one goes and the spacing doubles, up to the widest."""


class Kept(msgspec.Struct, frozen=True):
    """A snapshot after the entry at `position`. `digest` is that of the state."""

    position: int
    digest: str
    state: bytes


class SnapshotFold:
    """Folds the entries of a bundle, and takes snapshots between turns."""

    def __init__(self, source: Source, before: int, base: Base | None) -> None:
        """`before` is the position before the first entry. Nothing is folded if the state there is not known."""
        self.kept: list[Kept] = []
        self._blobs = Blobs(source.blob)
        self._state = self._beginning(before, base)
        self._spacing = SPACING
        self._begin = before
        self._turn = 0

    def fold(self, entry: Entry) -> None:
        """Fold the next entry. One that cannot follow ends the folding: the export goes on without."""
        if self._state is None:
            return
        try:
            if entry.turn != self._turn:
                self._turn = entry.turn
                self._between_turns(self._state)
            evolve(self._state, entry)
        except (KerfError, *INCONSISTENT):
            self._state = None

    def _beginning(self, before: int, base: Base | None) -> State | None:
        try:
            if base is not None:
                return restore(base, self._blobs)
            return State(Facts(), self._blobs) if not before else None
        except (KerfError, *INCONSISTENT):
            return None

    def _between_turns(self, state: State) -> None:
        latest = self.kept[-1].position if self.kept else self._begin
        if state.facts.position - latest < self._spacing:
            return
        data, digest = snapshot.encode(state)
        self.kept.append(Kept(state.facts.position, digest, data))
        if len(self.kept) > MOST and self._spacing < WIDEST:
            self.kept = self.kept[1::2]
            self._spacing *= 2
