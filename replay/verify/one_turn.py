"""Verify one turn: decide it again on the state that the record had before it."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.state.load import load
from kerf.replay.errors import PositionUnknown
from kerf.replay.verify.declared_changes import DeclaredChanges
from kerf.replay.verify.report import DIVERGED, UNSUPPORTED, Divergence, UnsupportedTurns
from kerf.replay.verify.report import SAME as SAME_CODE
from kerf.replay.verify.verifier import Heard, Verifier

SAME, DIFFERS, CANNOT = "same", "differs", "cannot"


class TurnReport(Struct, frozen=True, kw_only=True):
    """What came of deciding one turn again. `answer` is SAME, DIFFERS or CANNOT; `divergence` is the first difference,
    `unsupported` why this version cannot decide it."""

    position: int
    turn: int
    answer: str
    decisions: int
    divergence: Divergence | None = None
    unsupported: UnsupportedTurns | None = None

    @property
    def exit_code(self) -> int:
        """As of `Report`: 0 same, 1 diverged, 4 unsupported."""
        return {SAME: SAME_CODE, DIFFERS: DIVERGED, CANNOT: UNSUPPORTED}[self.answer]


def verify_turn(store: Store, position: int) -> TurnReport:
    """Decide the turn again that the entry at a position belongs to.

    Raises PositionUnknown (KERF202), and RecordShortened where the state before it is not known any more.
    """
    turn = _turn(store, position)
    before = turn[0].position - 1
    heard = Heard()
    heard.listen(store.scan(0, before, {"record.started", "decision.made"}))
    verifier = Verifier(store, lambda: load(store, before), 1, heard, DeclaredChanges(), settled=False)
    verifier.turn(turn)
    found = verifier.found
    unsupported = next(iter(found.unsupported.values()), None)
    divergence = next(iter(found.divergences), None)
    return TurnReport(
        position=position,
        turn=turn[0].position,
        answer=CANNOT if unsupported is not None else DIFFERS if divergence is not None else SAME,
        decisions=found.decisions,
        divergence=divergence,
        unsupported=unsupported,
    )


def _turn(store: Store, position: int) -> list[Entry]:
    """Return the entries of the turn of a position."""
    entry = next(store.scan(position - 1, position), None)
    if entry is None:
        raise PositionUnknown(f"there is no position {position}", hint="kerf log RECORD --all shows the positions")
    found = []
    for other in store.scan(entry.turn - 1):
        if other.turn != entry.turn:
            break
        found.append(other)
    return found
