"""Moves that come to nothing, or have to wait: each is over one day, and nobody looks again and again."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.engine.disruption.moves.execution import start
from kerf.engine.model.karpenter.nodepool_hash import VERSION
from kerf.engine.model.karpenter.nodepool_health import MAX_VAIN_LAUNCHES, VainLaunches
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.nodeclaim.state_table import TAINTED
from kerf.engine.record.decisions import Decision, MoveStepResult, Placement, ProposedMovesResult
from kerf.engine.record.observations import ObjectGone, Observation
from tests.support.lives import decide, half_empty, in_service
from tests.support.records import re_derived
from tests.support.world import START, World, pool

HOUR = 3_600_000
ELEVEN = START - START % HOUR + HOUR
"""START is 22:13:20."""


def results(world: World, kind: type) -> list[Any]:
    made = (entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision))
    return [result for result in made if isinstance(result, kind)]


def test_d110_the_nodepool_of_a_replacement_is_deleted_before_the_second_look() -> None:
    """The simulation finds another NodePool; what was decided cannot be asked for any more. Nothing looks again at a
    move for drift."""
    world = half_empty()
    world.see(Observation(pool("preferred", weight=10)))
    world.after(10_000)
    (move,) = results(world, ProposedMovesResult)[-1].proposed
    assert [new.node_pool for new in move.replacements] == ["preferred"]
    world.see(Observation(ObjectGone("nodepool", "preferred")))
    assert world.after(15_000) == []
    (step,) = results(world, MoveStepResult)
    assert (step.step, step.reason.params) == ("withdrawn", {"why": "other-nodepool"})
    at_once = start("1.0", replace(move, why="drifted"), world.runtime.state, START).result
    assert (at_once.step, at_once.reason.params) == ("withdrawn", {"why": "no-nodepool"})
    world.after(60_000)
    world.after(15_000)
    assert results(world, MoveStepResult)[-1].step == "started", "another move, with what there is"
    assert re_derived(world.store) == world.store.entries


def test_d108_a_node_that_pods_are_to_go_to_goes_before_the_move_starts() -> None:
    """Found by a simulation seed: a move for drift had waited for its budget, and nothing asked again."""
    world = half_empty()
    world.after(10_000)
    state = world.runtime.state
    (move,) = results(world, ProposedMovesResult)[-1].proposed
    (claim,) = state.facts.claims.values()
    elsewhere = replace(move, claims=(), why="drifted", replacements=(), placements=(Placement("n1", claim.name, ()),))
    assert start("1.0", elsewhere, state, START).result.step == "started"
    claim.state = TAINTED
    assert start("1.0", elsewhere, state, START).result.step == "withdrawn"
    del state.facts.claims[claim.name]
    assert start("1.0", elsewhere, state, START).result.step == "withdrawn"


def test_d125_launches_do_not_give_the_label_of_a_replacement_before_the_second_look() -> None:
    """Found by a simulation seed: the simulation found a like node of another NodePool, and what was decided was
    launched for a label that three launches had not given. Nothing looks again at a move for drift."""
    world = half_empty()
    preferred = replace(
        pool("preferred", weight=10), requirements=(RequirementSpec("example.com/tier", "In", ("gold",)),)
    )
    world.see(Observation(preferred))
    world.after(10_000)
    (move,) = results(world, ProposedMovesResult)[-1].proposed
    assert [new.node_pool for new in move.replacements] == ["preferred"]
    health = world.runtime.state.facts.health
    health["preferred"] = replace(
        health["preferred"], in_vain=(VainLaunches(preferred.requirements[0], MAX_VAIN_LAUNCHES),)
    )
    assert world.after(15_000) == []
    (step,) = results(world, MoveStepResult)
    assert (step.step, step.reason.params) == ("withdrawn", {"why": "other-nodepool"})
    at_once = start("1.0", replace(move, why="drifted"), world.runtime.state, START).result
    assert (at_once.step, at_once.reason.params) == ("withdrawn", {"why": "label-not-given"})


def test_d117_a_candidate_that_never_shows_its_taint_does_not_keep_kerf_busy() -> None:
    """Its replacement is in service: nothing is late, so no time is due."""
    world = half_empty()
    decide(world)
    ((ref, order),) = world.launches()
    old = next(claim for claim in world.runtime.state.facts.claims.values() if claim.node == "n1")
    world.answer_launch(ref, order, instance="i-2")
    provider = "aws:///us-west-2a/i-2"
    world.node("n2", provider)
    world.answer_all()
    world.node("n2", provider, registered="true")
    world.answer_all()
    world.node("n2", provider, registered="true", initialized="true")
    world.after(2 * HOUR)
    assert old.state == TAINTED
    for _ in range(5):
        due = world.runtime.next_due()
        assert due is None or due > world.now
        world.after(60_000)


def test_d45_a_drifted_node_that_only_a_window_keeps_is_looked_at_when_it_ends() -> None:
    """Consolidation has another reason to leave the node alone: what counts is that drift waits for the budget."""
    closed = Budget("0", "0 22 * * *", HOUR)
    settings: dict[str, Any] = {"budgets": (closed,), "consolidation_policy": "WhenEmpty", "hash_version": VERSION}
    world = in_service(hash="1", **settings)
    world.after(60_000)
    world.see(Observation(pool(hash="2", **settings)))
    world.after(60_000)
    world.after(60_000)
    (claim,) = world.runtime.state.facts.claims.values()
    assert (bool(claim.drifted_since), claim.verdict) == (True, "budget")
    assert world.after(ELEVEN - 15_000 - world.now) == [], "moves of other kinds would be proposed"
    assert world.after(14_999) == []
    assert world.after(1) != []
    assert claim.state == TAINTED
