"""Figures of a record: however they are divided, they add up to what the timeline and the claim events say."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from kerf.engine.record.claim_events import Launched, Terminated
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import LaunchAnswered, LaunchError
from kerf.engine.state.load import empty
from kerf.projections.cost import CostFold
from kerf.projections.figures.capacity import OFFERING_PARTS, CapacityFold
from kerf.projections.figures.churn import churn_measures
from kerf.projections.figures.cost import IDLE, cost_measures
from kerf.projections.figures.evictions import EvictionsFold
from kerf.projections.figures.lives import LivesFold
from kerf.projections.figures.measures import Table, in_common, table, within
from kerf.projections.figures.usage import UsageFold
from kerf.projections.timeline.timeline import Timeline
from tests.support.imports.imported import imported
from tests.support.manifests.nodeclaim_objects import claim
from tests.support.memory import MemoryStore
from tests.support.records import tampered
from tests.support.simulation.run import HOUR, Run, scale, workshop
from tests.support.world import START
from tests.support.worlds.observe_mode import shown, watching

DIMENSIONS = ("pool", "workload", "type", "zone", "capacity", "node", "reason", "hour")
COST = ("cost", "node_hours")


class Folded:
    """A record, folded: all of its entries, or `only` those that each fold reads."""

    def __init__(self, store: MemoryStore, *, only: bool = False) -> None:
        self.store = store
        self.lives, self.usage, self.plain = LivesFold(), UsageFold(empty(store).indexes.blobs.shape), CostFold()
        self.evictions, self.capacity = EvictionsFold(self.lives), CapacityFold(self.lives)
        self.paid = LivesFold(pods=not only)
        for entry in store.scan():
            self.plain.apply(entry)
            for fold in (self.lives, self.usage, self.evictions, self.capacity, self.paid):
                if not only or type(entry.payload) in fold.reads:
                    fold.apply(entry)
        self.since, self.until = store.entries[0].at, store.entries[-1].at

    def cost(self, by: str, since: int = 0, until: int = 0) -> Table:
        window = since or self.since, until or self.until
        return table(cost_measures(self.lives, by, *window, self.usage), by, COST)

    def events(self, *kinds: type) -> list[Entry]:
        return [entry for entry in self.store.entries if isinstance(entry.payload, kinds)]


@pytest.fixture(scope="module")
def day() -> Folded:
    """Twelve pods, then two, then eight; and a node that is taken back."""
    actions = [scale("10s", 12), scale("20m", 2), scale("80m", 8)]
    actions.append({"at": "110m", "action": "interrupt", "count": 1})
    return Folded(Run(workshop(*actions, capacity_type="spot"), until=3 * HOUR).memory)


def test_entries_that_a_fold_does_not_read_change_nothing(day: Folded) -> None:
    few = Folded(day.store, only=True)
    assert few.evictions.measures == day.evictions.measures
    assert few.capacity.measures == day.capacity.measures
    assert few.lives.lives == day.lives.lives
    assert few.usage.uses() == day.usage.uses()
    window = day.since, day.until
    assert list(cost_measures(few.paid, "reason", *window)) == list(cost_measures(day.lives, "reason", *window))


@pytest.mark.parametrize("by", DIMENSIONS)
def test_the_rows_of_each_dimension_add_up_to_the_cost_of_the_timeline(day: Folded, by: str) -> None:
    found = day.cost(by)
    expected = day.plain.total(day.until)
    assert expected > 0.05
    assert found.total["cost"] == pytest.approx(expected, abs=1e-9)
    assert sum(row.amounts["cost"] for row in found.rows) == pytest.approx(expected, abs=1e-9)
    assert len({row.group for row in found.rows}) == len(found.rows)


def test_what_ended_nodes_cost_is_what_the_timeline_says_to_the_cent(day: Folded) -> None:
    timeline = Timeline()
    told = [event for entry in day.store.entries for event in timeline.apply(entry)]
    ended = {event.subject.partition("/")[2]: event.params["cost"] for event in told if "cost" in event.params}
    assert ended
    costs = {row.group: row.amounts["cost"] for row in day.cost("node").rows}
    assert {claim: costs[claim] for claim in ended} == pytest.approx(ended, abs=1e-6)


@pytest.mark.parametrize("by", DIMENSIONS)
def test_parts_of_the_time_add_up_to_the_whole(day: Folded, by: str) -> None:
    cuts = [day.since, day.since + HOUR // 3, day.since + HOUR, day.until]
    parts = sum(day.cost(by, since, until).total["cost"] for since, until in pairwise(cuts))
    assert parts == pytest.approx(day.cost(by).total["cost"], abs=1e-9)


def test_workloads_share_a_node_by_what_they_request(day: Folded) -> None:
    groups = {row.group: row.amounts for row in day.cost("workload").rows}
    assert groups.keys() == {"other/inflate", IDLE}
    assert 0 < groups["other/inflate"]["cost"] < day.plain.total(day.until)
    assert all(amounts["node_hours"] > 0 for amounts in groups.values())


def test_another_price_list_prices_history_anew(day: Folded) -> None:
    doubled = LivesFold(lambda event: 2 * event.price)
    for entry in day.store.scan():
        doubled.apply(entry)
    found = table(cost_measures(doubled, "pool", day.since, day.until), "pool", COST)
    assert found.total["cost"] == pytest.approx(2 * day.cost("pool").total["cost"])
    assert found.total["node_hours"] == day.cost("pool").total["node_hours"]


def test_each_eviction_counts_once_under_its_workload_and_reason(day: Folded) -> None:
    measures = within(day.evictions.measures, day.since, day.until)
    by_workload = table(measures, "workload", ("evicted", "forced", "refused"))
    by_reason = table(measures, "reason", ("evicted", "forced", "refused"))
    assert by_workload.total["evicted"] > 0
    assert [row.group for row in by_workload.rows] == ["other/inflate"]
    assert by_workload.total == by_reason.total
    assert {row.group for row in by_reason.rows} <= {"interrupted", "underutilized", "empty"}
    pods = [measure.about["pod"] for measure in measures if "evicted" in measure.amounts]
    assert len(pods) == len(set(pods))


def test_churn_counts_each_launch_and_each_end(day: Folded) -> None:
    found = table(churn_measures(day.lives, day.since, day.until), "reason", ("launched", "gone", "failed", "unused"))
    assert found.total["launched"] == len(day.events(Launched))
    assert found.total["gone"] == len(day.events(Terminated))
    assert found.total["failed"] == 0
    assert "interrupted" in {row.group for row in found.rows}


def test_a_node_that_was_found_is_no_launch(tmp_path: Path) -> None:
    with imported(tmp_path, "karpenter-1.12.log") as (_, store):
        lives = LivesFold()
        for entry in store.scan():
            lives.apply(entry)
        total = table(churn_measures(lives, 0, lives.at), "reason", ("launched", "gone")).total
    assert total == {"launched": 1, "gone": 4}


@pytest.mark.parametrize(("created", "launched"), [(START, 1), (START - HOUR, 0)])
def test_an_observed_node_is_launched_when_its_object_is_created(created: int, launched: int) -> None:
    world = watching()
    shown(world, claim(1, created=created))
    lives = LivesFold()
    for entry in world.store.scan():
        lives.apply(entry)
    measures = list(churn_measures(lives, START, world.store.entries[-1].at))
    assert [measure.amounts for measure in measures] == [{"launched": 1}] * launched


def test_refusals_count_by_offering_with_their_first_and_last_time(day: Folded) -> None:
    answers = day.events(LaunchAnswered)
    errors = tuple(LaunchError("InsufficientInstanceCapacity", "", "m5.large", zone, "spot") for zone in "ab")

    def refused(entries: list[Entry]) -> list[Entry]:
        return [
            replace(entry, payload=replace(entry.payload, errors=errors)) if entry in answers[:2] else entry
            for entry in entries
        ]

    fold = Folded(tampered(day.store, refused))
    found = table(fold.capacity.measures, "offering", ("refused", "launches_lost"))
    assert {row.group: row.amounts["refused"] for row in found.rows} == {"spot/m5.large/a": 2, "spot/m5.large/b": 2}
    assert (found.rows[0].first, found.rows[0].last) == (answers[0].at, answers[1].at)
    assert found.total == {"refused": 4, "launches_lost": 0}


def test_what_refusals_have_in_common_is_found() -> None:
    spot = [{"zone": "a", "capacity": "spot", "type": kind} for kind in ("m5.large", "c5.large")]
    assert in_common(spot, OFFERING_PARTS) == {"zone": "a", "capacity": "spot"}
    assert in_common([*spot, {"zone": "b", "capacity": "spot"}], OFFERING_PARTS) == {"capacity": "spot"}
    assert in_common(spot[:1], OFFERING_PARTS) == {}
