"""Fold moves from their proposal to their end."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, ProposedMovesResult
from kerf.engine.record.entries import Entry
from kerf.engine.state.moves import STARTED
from kerf.projections.prose.reasons import sentence
from kerf.projections.tables.rows import MoveRow

PROPOSED, OVER = "proposed", "over"
_LEAVES = (ev.DrainStarted, ev.ReasonRaised, ev.Untainted, ev.Terminated, ev.InstanceVanished)


class _Life(Struct):
    ref: str
    move: Move
    proposed: int
    started: int = 0
    ended: int = 0
    outcome: str = PROPOSED
    reason: Reason | None = None
    waits_for: set[str] = set()
    """Its claims that are not being drained yet."""


class MovesFold:
    """Folds moves. One is over when each of its claims is being drained, stays, or goes for another reason."""

    def __init__(self) -> None:
        self._moves: dict[str, _Life] = {}
        self._of_claim: dict[str, _Life] = {}

    def apply(self, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, Decision):
            if isinstance(payload.result, ProposedMovesResult):
                for index, move in enumerate(payload.result.proposed):
                    ref = f"{entry.position}.{index}"
                    self._moves[ref] = _Life(ref, move, entry.at)
            elif isinstance(payload.result, MoveStepResult):
                self._step(payload.result, entry.at)
        elif isinstance(payload, _LEAVES) and payload.claim in self._of_claim:
            self._leaves(payload.claim, entry.at)

    def rows(self) -> list[MoveRow]:
        """Return all moves in the order of their proposals. Those that began before the record are left out."""
        return [_row(life) for life in self._moves.values()]

    def _step(self, result: MoveStepResult, at: int) -> None:
        life = self._moves.get(result.move)
        if life is None:
            return
        life.outcome, life.reason = result.step, result.reason
        if result.step == STARTED and result.begun is not None:
            life.move, life.started, life.waits_for = result.begun, at, set(result.begun.claims)
            self._of_claim.update(dict.fromkeys(result.begun.claims, life))
            return
        life.ended = at
        for claim in life.move.claims:
            self._of_claim.pop(claim, None)

    def _leaves(self, claim: str, at: int) -> None:
        life = self._of_claim.pop(claim)
        life.waits_for.discard(claim)
        if not life.waits_for:
            life.outcome, life.ended = OVER, at


def _row(life: _Life) -> MoveRow:
    move = life.move
    return MoveRow(
        move=life.ref, why=move.why, claims=move.claims,
        replacements=tuple(new.name for new in move.replacements if new.name),
        new_nodes=len(move.replacements), savings=move.savings, proposed=life.proposed, started=life.started,
        ended=life.ended, outcome=life.outcome, reason=life.reason.code if life.reason is not None else "",
        because=sentence(life.reason) if life.reason is not None else "",
    )  # fmt: skip
