"""What a what-if says of prices, and of pods that the change takes nothing from."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kerf.adapters.cli.render.what_if.whatif import decision_words
from kerf.replay.time_travel.moments import moment_of
from kerf.replay.what_if.changes import Change, set_pool_field
from kerf.replay.what_if.offering_changes import set_price, without_capacity
from kerf.replay.what_if.whatif import WhatIf, what_if
from tests.support.memory import MemoryStore
from tests.support.simulation.run import Run, documents, scale, workshop

MINUTE = 60_000


@pytest.fixture(scope="module")
def record() -> MemoryStore:
    """Five pods on an m5.large, and one pod that is too large for every type of the NodePool."""
    manifests: list[Any] = [*workshop(scale("10s", 5)), *documents("simulations/no-fit.yaml")]
    return Run(deepcopy(manifests), until=15 * MINUTE).memory


def asked(store: MemoryStore, change: Change) -> WhatIf:
    moment = moment_of(store, "+10m")
    return what_if(store, moment.position, [change], moment.at)


def test_without_the_change_nodes_cost_what_they_cost_in_the_record(record: MemoryStore) -> None:
    answer = asked(record, set_price("on-demand", "+100%"))
    assert not answer.changed.deciders
    assert answer.unchanged.price == answer.price > 0
    assert answer.changed.price == pytest.approx(2 * answer.price)


def test_a_change_takes_no_place_from_pods_that_wait_already(record: MemoryStore) -> None:
    answer = asked(record, without_capacity("on-demand"))
    [huge] = [difference for difference in answer.differences if "other/huge" in difference.pods]
    assert (huge.sign, huge.what) == ("~", "still-no-place")
    assert huge.reasons


def test_nodes_that_go_once_the_budgets_have_room_are_told_apart() -> None:
    """D-51: more nodes are proposed than may go at once. The budget of one in ten lets one of three go."""
    store = Run(workshop(scale("10s", 60), scale("30m", 12)), until=31 * MINUTE).memory
    moment = moment_of(store, "+29m")

    wide = what_if(store, moment.position, [set_pool_field("default", "spec.disruption.budgets[0].nodes", "100%")])

    going = len(wide.unchanged.leaving)
    assert wide.unchanged.beyond_budget == going - 1 > 0
    assert f"{going} nodes to go ({going - 1} of them once the budgets have room)" in decision_words(
        wide.unchanged, wide
    )
    assert len(wide.changed.leaving) > 1
    assert wide.changed.beyond_budget == 0
    assert "budgets" not in decision_words(wide.changed, wide)
