"""What the explorer draws over time agrees with the fold of the state and with the figures."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.nodeclaim.state_table import (
    DRAINING,
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    REQUESTED,
    TAINTED,
    TERMINATED,
)
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import load
from kerf.projections.cost import CostFold
from kerf.projections.explorer.boxes import boxes
from kerf.projections.explorer.curves import CurvesFold, CurveSteps
from kerf.projections.explorer.drawn import Drawn
from kerf.projections.explorer.lanes import LanesFold, Span
from kerf.projections.explorer.marks import CHANGE, DECISION, Mark
from kerf.projections.explorer.overview import OverviewFold
from kerf.projections.timeline.timeline import Timeline
from tests.support.records import whole_life
from tests.support.world import World


def folded(world: World) -> Drawn:
    fold = OverviewFold(Timeline(), Blobs(world.store.blob).shape)
    for entry in world.store.entries:
        fold.apply(entry)
    return fold.drawn()


def test_a_lane_has_the_states_of_its_claim_at_every_position() -> None:
    store, fold = whole_life().store, LanesFold()
    for entry in store.entries:
        fold.apply(entry)
        for name, claim in load(store, entry.position).facts.claims.items():
            lane = fold.lanes[name]
            assert (lane.spans[-1].state, lane.price, lane.node_pool) == (claim.state, claim.price, claim.node_pool)


def test_a_whole_life_is_one_lane() -> None:
    (lane,) = folded(whole_life()).lanes
    states = [REQUESTED, LAUNCHED, REGISTERED, INITIALIZED, TAINTED, DRAINING, TERMINATED]
    assert [span.state for span in lane.spans] == states
    assert lane.end == lane.spans[-1].at
    assert [span.position for span in lane.spans] == sorted(span.position for span in lane.spans)


def test_marks_are_on_the_lanes_that_they_concern() -> None:
    overview = folded(whole_life())
    known = {lane.claim for lane in overview.lanes}
    assert overview.marks
    assert {claim for mark in overview.marks for claim in mark.claims} == known
    assert DECISION in {mark.kind for mark in overview.marks}


def test_a_budget_that_is_made_changed_and_deleted_is_marked_and_its_counts_are_not() -> None:
    world, budget = World(), PodDisruptionBudget("u1", "default", "web", min_available="2")
    counts = replace(budget, expected_pods=2, desired_healthy=2)
    for thing in (Node("n1", created=1), budget, counts, replace(counts, min_available="1"), ObjectGone("pdb", "u1")):
        world.see(Observation(thing))
    assert [(mark.kind, mark.text) for mark in folded(world).marks] == [
        (CHANGE, "PodDisruptionBudget default/web was created: minAvailable 2"),
        (CHANGE, "PodDisruptionBudget default/web was changed: minAvailable 2 → 1"),
        (CHANGE, "PodDisruptionBudget default/web is gone"),
    ]


@pytest.mark.parametrize("points", [3, 1_000])
def test_the_curve_of_cost_is_the_highest_rate_of_the_cost_report(points: int) -> None:
    store, cost = whole_life().store, CostFold()
    rates = {}
    for entry in store.entries:
        cost.apply(entry)
        rates[entry.at] = cost.report(entry.at).rate
    curves = folded(whole_life()).curves_of(0, 0, points)
    for before, time, price in zip((0, *curves.times), curves.times, curves.cost["default"], strict=False):
        begin = max((at for at in rates if at <= before), default=0)
        assert price == round(max(rate for at, rate in rates.items() if begin <= at <= time), 6)


def test_the_cost_of_a_moment_is_that_of_all_nodepools_at_once() -> None:
    """One NodePool is dear in the first half of a step, another in the second: never both."""
    steps = CurveSteps()
    for pool, at, nodes, price in (("a", 100, 1, 2.0), ("a", 200, -1, 2.0), ("b", 200, 1, 3.0), ("b", 300, -1, 3.0)):
        steps.runs(pool, at, nodes, price)
    curves = steps.curves(0, 1_000, 2)
    assert curves.cost == {"a": (0.0, 0.0), "b": (0.0, 3.0)}


def test_tiles_of_any_level_together_have_what_is_in_them() -> None:
    drawn = folded(whole_life())
    (lane,) = drawn.lanes
    finest, coarsest = drawn.levels()
    for level in range(finest, coarsest + 1):
        tiles = [drawn.tile(level, number) for number in range(drawn.since >> level, (drawn.until >> level) + 1)]
        assert sorted(mark.position for tile in tiles for mark in tile.marks) == [m.position for m in drawn.marks]
        for tile in tiles:
            begin, end = tile.number << level, (tile.number + 1) << level
            assert [(shown.claim, shown.end) for shown in tile.lanes] == (
                [(lane.claim, lane.end)] if lane.start < end and lane.end >= begin else []
            )
            assert all(begin <= mark.at < end for mark in tile.marks)
        positions = [span.position for tile in tiles for shown in tile.lanes for span in shown.spans]
        assert list(dict.fromkeys(positions)) == [span.position for span in lane.spans]


def test_a_tile_beyond_the_record_is_empty() -> None:
    drawn = folded(whole_life())
    finest, _ = drawn.levels()
    after = drawn.tile(finest, (drawn.until >> finest) + 1)
    assert (after.lanes, after.marks) == ((), ())


def test_a_coarse_tile_leaves_out_what_is_short_and_counts_marks_together() -> None:
    drawn = folded(whole_life())
    lane, end = drawn.lanes[0], (1 << 19) - 1
    lane.spans = [Span(REQUESTED, 5, 1), Span(LAUNCHED, 6, 2), Span(INITIALIZED, 7, 3), Span(TERMINATED, end, 4)]
    drawn.marks = [Mark(position=n, at=2_000 + n, kind=DECISION, claims=(), text=f"{n}") for n in range(40_000)]
    drawn.since, drawn.until, lane.end = 5, end, end
    finest, coarsest = drawn.levels()
    assert finest < coarsest
    tile = drawn.tile(coarsest, 0)
    assert [span.state for span in tile.lanes[0].spans] == [INITIALIZED, TERMINATED]
    assert sum(1 + mark.more for mark in tile.marks) == 40_000
    assert len(tile.marks) < 100
    fine = drawn.tile(finest, 0)
    assert [span.state for span in fine.lanes[0].spans][:3] == [REQUESTED, LAUNCHED, INITIALIZED]
    assert all(mark.more == 0 for mark in fine.marks)


def test_how_full_a_node_is_is_the_sum_of_its_box() -> None:
    store = whole_life().store
    fold = OverviewFold(Timeline(), Blobs(store.blob).shape)
    seen = set()
    for entry in store.entries:
        fold.apply(entry)
        state, fills = load(store, entry.position), fold.drawn().fills
        for node, found in state.facts.nodes.items():
            used = {"cpu": 0, "memory": 0}
            for uid in state.indexes.pods_by_node.get(node, {}):
                for name, amount in state.indexes.blobs.shape(state.facts.pods[uid].shape).requests.items():
                    if name in used:
                        used[name] += amount
            shares = [used[name] / found.allocatable[name] for name in used if found.allocatable.get(name)]
            assert fills[node].values[-1] == round(100 * max(shares, default=0))
            seen.add(fills[node].values[-1])
    assert max(seen) > 0


def test_pods_that_wait_are_counted_while_they_wait() -> None:
    curves = CurvesFold()
    store = whole_life().store
    for entry in store.entries:
        curves.apply(entry)
    ends = (store.entries[0].at, store.entries[-1].at)
    pending = [len(load(store, entry.position).indexes.pending) for entry in store.entries]
    drawn = curves.steps.curves(*ends, 500).pending
    assert max(drawn) == max(pending) > 0
    assert drawn[-1] == pending[-1] == 0


def test_a_box_holds_the_pods_of_its_node() -> None:
    store = whole_life().store
    filled: dict[str, float] = {}
    for entry in store.entries:
        state = load(store, entry.position)
        for node, pods in boxes(state).items():
            assert {pod.pod for pod in pods} == {
                state.facts.pods[uid].key for uid in state.indexes.pods_by_node.get(node, {})
            }
            assert [pod.share for pod in pods] == sorted((pod.share for pod in pods), reverse=True)
            filled[node] = max(filled.get(node, 0.0), sum(pod.share for pod in pods))
    assert all(0 < share <= 1 for share in filled.values())
    assert filled
