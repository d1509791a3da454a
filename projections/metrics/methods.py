"""Karpenter's disruption methods as the label `consolidation_type` of kerf's passes and moves (M-2)."""

from __future__ import annotations

from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.record.decisions import Move

EVALUATED = (
    (DisruptionReason.EMPTY, "empty"), (DisruptionReason.DRIFTED, ""),
    (DisruptionReason.UNDERUTILIZED, "multi"), (DisruptionReason.UNDERUTILIZED, "single"),
)  # fmt: skip
"""The methods of Karpenter that one pass stands for, with their consolidation_type (L-404)."""


def consolidation_type(move: Move) -> str:
    """Return the label consolidation_type (M-2); "" for drift."""
    if move.why == DisruptionReason.EMPTY:
        return "empty"
    if move.why != DisruptionReason.UNDERUTILIZED:
        return ""
    return "multi" if len(move.claims) > 1 else "single"
