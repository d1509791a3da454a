"""Which of several moves starts first, and so gets what the disruption budgets leave."""

from __future__ import annotations

from kerf.engine.record.decisions import Move


def starting_rank(move: Move) -> tuple[float, int]:
    """The rank of a move; lower ones start first. The highest savings for each node come first, then the fewest pods
    that move."""
    pods = sum(len(place.pods) for place in move.placements) + sum(len(new.pods) for new in move.replacements)
    return round(-move.savings / len(move.claims), 9), pods
