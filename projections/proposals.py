"""The moves that a disruption pass proposed, or that began, by what they are known as; and what ends with the turn in
which a process takes office."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.nodeclaim.state_table import ROWS, TERMINATED
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, ProposedMovesResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import OfficeTaken

_ENDS = tuple(row.event for row in ROWS if row.dest == TERMINATED)
"""The events with which a claim is over."""


def proposals(entry: Entry) -> dict[str, Move]:
    """Return the moves of one entry, by "position.index". One that began names its replacements."""
    result = entry.payload.result if isinstance(entry.payload, Decision) else None
    if isinstance(result, MoveStepResult) and result.begun is not None:
        return {result.move: result.begun}
    proposed = result.proposed if isinstance(result, ProposedMovesResult) else ()
    return {f"{entry.position}.{index}": move for index, move in enumerate(proposed)}


def proposals_that_end_with_office(entries: Sequence[Entry]) -> list[Entry]:
    """Return which of these entries proposed or began moves that end with the turn in which the last process takes
    office. The state that the process begins with has them no more."""
    before, turn = around_office(entries)
    results = [entry.payload.result for entry in turn if isinstance(entry.payload, Decision)]
    ended = {result.move for result in results if isinstance(result, MoveStepResult)}
    return [entry for entry in before if ended & proposals(entry).keys()]


def lives_that_end_with_office(entries: Sequence[Entry]) -> list[Entry]:
    """Return the earlier claim events of NodeClaims that are over with the turn in which the last process takes office.
    The state that the process begins with has them no more."""
    before, turn = around_office(entries)
    over = {entry.stream for entry in turn if isinstance(entry.payload, _ENDS)}
    return [entry for entry in before if entry.stream in over]


def around_office(entries: Sequence[Entry]) -> tuple[Sequence[Entry], Sequence[Entry]]:
    """Return the entries before the last process takes office, and those from there on: its first turn, which the state
    that it begins with has already, and of which nobody has told yet."""
    taken = (index for index, entry in enumerate(entries) if isinstance(entry.payload, OfficeTaken))
    first = max(taken, default=len(entries))
    return entries[:first], entries[first:]
