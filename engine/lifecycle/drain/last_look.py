"""The last look at a move, before the drains of its nodes begin: a NodeClaim that is deleted cannot be kept any more
(D-116, D-118)."""

from __future__ import annotations

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.engine.scheduling.problem.departing_pods import kept_pods
from kerf.engine.state.moves import goes_by, replacements_awaited
from kerf.engine.state.state import State


def called_off_because(move: Move, state: State, now: int) -> Reason | None:
    """Why a started move whose replacements are in service does not go on: pods that are to move may not leave any
    more. None if it may go on, or still waits.

    All of its nodes go, or none (D-110). Replacements that are not for pods, of static NodePools, need no pods to come.
    """
    moved = {uid for new in move.replacements for uid in new.pods}
    if not moved or replacements_awaited(state, move):
        return None
    moved |= {uid for place in move.placements for uid in place.pods}
    claims = (state.facts.claims[name] for name in move.claims if name in state.facts.claims)
    found = (kept_pods(claim, moved, state, now) for claim in claims if goes_by(claim, move))
    return next((reason for reason in found if reason is not None), None)
