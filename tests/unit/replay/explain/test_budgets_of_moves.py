"""What the budgets allowed when a move was proposed, and when it began."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.record.decisions import Decision, MoveStepResult, ProposedMovesResult
from kerf.replay.explain.decision import explain_decision
from tests.support.lives import PODS, in_service
from tests.support.world import World


def emptied(*budgets: Budget, later: int = 0) -> World:
    """A node whose pods go, so that it is taken."""
    world = in_service(consolidate_after=0, budgets=budgets)
    world.after(120_000 + later)
    for name in PODS:
        world.gone(name)
    for _ in range(40):
        world.after(1_000)
    return world


def allowed(world: World, position: int) -> tuple[Any, Any]:
    """How many nodes the budget allowed, and how many counted for it."""
    (use,) = explain_decision(world.store, position).budgets
    return use.params["allowed"], use.params["consuming"]


def decisions(world: World) -> Iterable[tuple[int, int, Any]]:
    for entry in world.store.entries:
        if isinstance(entry.payload, Decision):
            yield entry.position, entry.at, entry.payload.result


def begun(world: World) -> tuple[int, int]:
    """Where and when the move begins."""
    return next((at, now) for at, now, of in decisions(world) if isinstance(of, MoveStepResult) and of.begun)


def test_a_move_that_begins_does_not_count_for_its_own_budget() -> None:
    world = emptied(Budget("1"))
    proposed = next(at for at, _, of in decisions(world) if isinstance(of, ProposedMovesResult) and of.proposed)
    assert allowed(world, proposed) == (1, 0)
    assert allowed(world, begun(world)[0]) == (1, 0)


def test_budgets_of_a_move_that_begins_are_those_of_that_time() -> None:
    """Five seconds later a window begins that lets no node go."""
    _, now = begun(emptied(Budget("1")))
    later = (55_000 - now) % 60_000
    window = datetime.fromtimestamp((now + later + 5_000) / 1000, UTC)
    closed = Budget("0", schedule=f"{window.minute} {window.hour} * * *", duration=3_600_000)
    world = emptied(Budget("1"), closed, later=later)
    assert begun(world)[1] == now + later
    assert allowed(world, begun(world)[0]) == (1, 0)
