"""D-108: a node whose disruption is proposed gets a taint that keeps new pods off it, until it goes or stays."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.runtime.proposed_taints import ProposedTaints
from tests.support import lives
from tests.support.world import World, pool
from tests.support.worlds import drift


def proposed() -> World:
    """The replacement of `n1` is proposed, and has not started."""
    world = lives.half_empty()
    world.after(10_000)
    (underway,) = world.runtime.state.facts.moves.values()
    assert not underway.started
    return world


def due(taints: ProposedTaints, world: World) -> list[tuple[str, bool]]:
    return list(taints.due(world.runtime.state))


def show(world: World, *, on: bool) -> None:
    """The watch shows the taint on `n1`, or that it is gone."""
    world.see(Observation(replace(world.runtime.state.facts.nodes["n1"], proposed=on)))


def test_d108_a_node_is_tainted_once_when_its_disruption_is_proposed() -> None:
    world, taints = lives.half_empty(), ProposedTaints()
    assert due(taints, world) == []
    world.after(10_000)
    assert due(taints, world) == [("n1", True)]
    assert due(taints, world) == []


def test_d108_a_node_that_stays_after_all_loses_the_taint() -> None:
    world, taints = proposed(), ProposedTaints()
    assert due(taints, world) == [("n1", True)]
    show(world, on=True)
    world.see(Observation(pool(budgets=(Budget("0"),))))
    world.after(15_000)
    assert not world.runtime.state.facts.moves
    assert due(taints, world) == [("n1", False)]


def test_d108_a_node_that_goes_keeps_the_taint() -> None:
    """Its taint of disruption keeps pods off, and the write would be in vain."""
    world, taints = proposed(), ProposedTaints()
    assert due(taints, world) == [("n1", True)]
    world.after(15_000)
    assert next(iter(world.runtime.state.facts.moves.values())).started
    assert due(taints, world) == []


def test_a_new_process_takes_the_taint_off_where_nothing_is_proposed() -> None:
    world = lives.in_service()
    show(world, on=True)
    taints = ProposedTaints()
    assert due(taints, world) == [("n1", False)]
    assert due(taints, world) == []


def test_a_write_that_failed_is_due_again() -> None:
    world, taints = proposed(), ProposedTaints()
    assert due(taints, world) == [("n1", True)]
    taints.failed("n1", on=True)
    assert due(taints, world) == [("n1", True)]
    world.see(Observation(ObjectGone("node", "n1")))
    taints.failed("n1", on=False)
    assert due(taints, world) == []


def test_d27_the_taint_alone_brings_no_disruption_pass() -> None:
    world = proposed()
    before = world.runtime.state.facts.moves_changed
    show(world, on=True)
    assert world.runtime.state.facts.nodes["n1"].proposed
    assert world.runtime.state.facts.moves_changed == before == 0


def test_d62_a_node_that_has_drifted_is_tainted_while_it_waits_for_its_replacement() -> None:
    """Pods of other drifted nodes, which go before it, would come and be evicted again."""
    world, taints = kept(Budget("10%")), ProposedTaints()
    before = drift.pool_now(world)
    drift.change(world, labels={"team": "b"})
    assert due(taints, world) == [], "it may go with the next pass"
    world.after(10_000)
    assert not world.runtime.state.facts.moves
    assert due(taints, world) == [("n1", True)]
    world.see(Observation(before))
    assert due(taints, world) == [("n1", False)]


def test_d48_drifted_nodes_whose_budgets_let_none_go_have_no_taint() -> None:
    world, taints = kept(Budget("0", reasons=("Drifted",))), ProposedTaints()
    drift.change(world, labels={"team": "b"})
    world.after(10_000)
    assert due(taints, world) == []
    drift.change(world, budgets=(Budget("0", reasons=("Empty",)),))
    assert due(taints, world) == [("n1", True)]


def kept(budget: Budget) -> World:
    """A pod of its node may not be disrupted."""
    world = drift.in_service()
    world.see(Observation(replace(world.pods["a"], do_not_disrupt="true")))
    drift.change(world, budgets=(budget,))
    return world
