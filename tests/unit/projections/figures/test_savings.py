"""What moves saved is the cost of a cluster without them, less what it did cost."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.record.claim_events import Adopted, Launched, Requested, Tainted, Terminated
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, PlannedClaim
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF
from kerf.projections.figures.lives import LivesFold
from kerf.projections.figures.measures import Table, table
from kerf.projections.figures.savings import saving_measures
from tests.support.simulation.run import HOUR, Run, scale, workshop
from tests.support.world import NODE_CLASS

START = 1_767_225_600_000
Happened = tuple[float, Struct]


def came(claim: str, at: float, price: float, pool: str = "p") -> list[Happened]:
    launched = Launched(claim, f"i-{claim}", "", "m5.large", "a", "spot", price, {}, {})
    return [(at, Requested(claim, pool, NODE_CLASS, (), (), {}, (), price, 1)), (at, launched)]


def went(claim: str, at: float, why: str = "empty") -> list[Happened]:
    return [(at, Tainted(claim, why)), (at, Terminated(claim, why))]


def move(at: float, old: tuple[str, ...], new: str, why: str = "underutilized") -> list[Happened]:
    planned = PlannedClaim(new, "p", (), (), (), {}, 0.1, ("spot",))
    result = MoveStepResult("1.0", "started", Reason(why), Move(why, old, (planned,)))
    return [(at, Decision("move", 0, 0, 1, "", result))]


def saved(*happened: Iterable[Happened], since: float = 0, until: float = 10, by: str = "reason") -> Table:
    """What was saved between two hours."""
    fold = LivesFold()
    ordered = sorted((item for items in happened for item in items), key=lambda item: item[0])
    for position, (hour, payload) in enumerate(ordered, start=1):
        at = START + round(hour * HOUR)
        fold.apply(Entry(position, position, "s", position, NAME_OF[type(payload)], 1, at, 0, 1, payload))
    window = START + round(since * HOUR), START + round(until * HOUR)
    return table(saving_measures(fold, *window), by, ("saved", "gone", "replacements"))


def amounts(found: Table) -> dict[str, Any]:
    return {row.group: tuple(row.amounts.values()) for row in found.rows}


def test_an_empty_node_saved_its_price_from_its_end_on() -> None:
    found = saved(came("a", 0, 0.2), went("a", 4))
    assert amounts(found) == {"empty": (pytest.approx(6 * 0.2), 1, 0)}


def test_what_replaces_a_node_is_taken_off_also_while_both_run() -> None:
    found = saved(came("a", 0, 0.2), move(4, ("a",), "b"), came("b", 4, 0.15), went("a", 5, "underutilized"))
    assert amounts(found) == {"underutilized": (pytest.approx(5 * 0.05 - 0.15), 1, 1)}


def test_one_replacement_is_shared_by_the_nodes_that_went() -> None:
    two = [*came("a", 0, 0.3), *came("b", 0, 0.1)]
    gone = [*went("a", 2, "underutilized"), *went("b", 2, "underutilized")]
    found = saved(two, move(2, ("a", "b"), "c"), came("c", 2, 0.2), gone, by="node")
    assert {row.group: row.amounts["saved"] for row in found.rows} == {
        "a": pytest.approx(8 * (0.3 - 0.15)),
        "b": pytest.approx(8 * (0.1 - 0.05)),
        "c": 0,  # the replacement
    }


def test_a_dearer_replacement_costs() -> None:
    found = saved(came("a", 0, 0.1), move(4, ("a",), "b", "drifted"), came("b", 4, 0.3), went("a", 4, "drifted"))
    assert amounts(found) == {"drifted": (pytest.approx(6 * -0.2), 1, 1)}


@pytest.mark.parametrize(("price", "rest"), [(0.2, 0.0), (0.5, 0.0), (0.05, 4 * 0.15)])
def test_a_node_that_comes_for_pods_later_would_have_been_there(price: float, rest: float) -> None:
    found = saved(came("a", 0, 0.2), went("a", 4), came("b", 6, price))
    whole = 2 * 0.2 + 4 * max(0.0, 0.2 - price)
    assert amounts(found) == {"empty": (pytest.approx(whole), 1, 0)}
    assert whole == pytest.approx(2 * 0.2 + rest)


def test_a_node_of_another_nodepool_stands_in_for_none() -> None:
    found = saved(came("a", 0, 0.2), went("a", 4), came("b", 6, 0.2, "q"))
    assert found.total["saved"] == pytest.approx(6 * 0.2)


def test_an_adopted_node_stands_in_as_well() -> None:
    adopted = Adopted("b", "initialized", "p", NODE_CLASS, instance_type="m5.large", price=0.2)
    found = saved(came("a", 0, 0.2), went("a", 4), [(6, adopted)])
    assert found.total["saved"] == pytest.approx(2 * 0.2)


def test_what_leaves_no_choice_saves_nothing_and_its_replacement_is_one_for_pods() -> None:
    found = saved(came("a", 0, 0.2), move(4, ("a",), "b"), came("b", 4, 0.15), went("a", 4, "interrupted"))
    assert found.rows == ()


def test_a_replacement_of_a_node_that_stays_costs_under_the_reason_of_the_move() -> None:
    found = saved(came("a", 0, 0.2), move(4, ("a",), "b"), came("b", 4, 0.1))
    assert amounts(found) == {"underutilized": (pytest.approx(-6 * 0.1), 0, 1)}


def test_days_alike_save_as_much_as_a_cluster_that_keeps_its_first_node() -> None:
    actions = [scale(f"{day * 1440 + at}m", pods) for day in range(3) for at, pods in ((10, 12), (360, 6), (600, 0))]
    store = Run(workshop(*actions), until=72 * HOUR).memory
    fold = LivesFold()
    for entry in store.scan():
        fold.apply(entry)
    begin, end = store.entries[0].at, store.entries[0].at + 72 * HOUR

    def saved_between(since: int, until: int) -> float:
        return table(saving_measures(fold, since, until), "reason", ("saved",)).total["saved"]

    first = min((life for life in fold.lives.values()), key=lambda life: life.launched)
    kept = first.price * (end - first.launched) / HOUR
    assert saved_between(begin, end) == pytest.approx(kept - fold.cost.total(end))
    cuts = [begin, begin + 7 * HOUR, begin + 24 * HOUR, begin + 30 * HOUR, end]
    assert sum(saved_between(*part) for part in pairwise(cuts)) == pytest.approx(saved_between(begin, end))
