"""Disruption passes and steps of moves, read off a record."""

from __future__ import annotations

from kerf.engine.record.decisions import (
    Decision,
    MoveStepResult,
    ProposedMovesResult,
)
from tests.support.world import World

HOUR = 3_600_000


def passes(world: World) -> list[ProposedMovesResult]:
    found = [entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision)]
    return [result for result in found if isinstance(result, ProposedMovesResult)]


def steps(world: World) -> list[MoveStepResult]:
    found = [entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision)]
    return [result for result in found if isinstance(result, MoveStepResult)]
