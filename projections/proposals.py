"""The moves that a disruption pass proposed, by what they are known as."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.record.decisions import Decision, Move, MoveStepResult, ProposedMovesResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import OfficeTaken


def proposals(entry: Entry) -> dict[str, Move]:
    """Return the moves of one entry, by "position.index"."""
    result = entry.payload.result if isinstance(entry.payload, Decision) else None
    proposed = result.proposed if isinstance(result, ProposedMovesResult) else ()
    return {f"{entry.position}.{index}": move for index, move in enumerate(proposed)}


def proposals_that_end_with_office(entries: Sequence[Entry]) -> list[Entry]:
    """Return which of these entries proposed moves that end with the turn in which the last process takes office. The
    state that the process begins with has them no more."""
    first = max((index for index, entry in enumerate(entries) if isinstance(entry.payload, OfficeTaken)), default=0)
    results = [entry.payload.result for entry in entries[first:] if isinstance(entry.payload, Decision)]
    ended = {result.move.partition(".")[0] for result in results if isinstance(result, MoveStepResult)}
    return [entry for entry in entries[:first] if str(entry.position) in ended]
