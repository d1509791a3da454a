"""What the search spends its effort on: no planning that gains nothing, none twice, no rating that cannot end."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import PodShape, Selector, SpreadConstraint
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.effort import binding_touches
from kerf.engine.scheduling.optimizer.search import search
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.problems import GI, Workloads, dear_giant, ladder, problem, shape

EFFORT = 100
ZONE_SPREAD = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "web"}))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pods each plan of the search is for."""
    asked: list[int] = []

    def listening(given: Problem, **options: Any) -> Plan:
        asked.append(len(given.pods))
        return plan(given, **options)

    monkeypatch.setattr(search, "plan", listening)
    return asked


def price(planned: Plan) -> float:
    return math.fsum(claim.price for claim in planned.claims)


def spread(cpu: int) -> PodShape:
    return shape(cpu, GI, labels={"app": "web"}, spread=(ZONE_SPREAD,))


def test_s208_a_dear_plan_is_not_made_again_where_all_types_cost_what_their_room_is_worth(
    monkeypatch: pytest.MonkeyPatch, planned: list[int]
) -> None:
    monkeypatch.setattr(search, "DEAR_PLAN", 10**9)
    work = Workloads()
    for number in range(20):
        work.add(f"web-{number}", 1, spread(300 + 10 * number))
    best_plan(problem(work, ladder(2, 4, 8, 16)), EFFORT)
    assert len(work.pods) not in planned


def test_s208_it_is_made_again_where_nodes_cost_more_than_their_room_is_worth(
    monkeypatch: pytest.MonkeyPatch, planned: list[int]
) -> None:
    monkeypatch.setattr(search, "DEAR_PLAN", 10**9)
    work = Workloads().add("web", 30, spread(1900))
    asked = problem(work, dear_giant())
    assert price(best_plan(asked, EFFORT)) < price(plan(asked)) / 5
    assert len(work.pods) in planned


def test_s208_groups_that_differ_in_labels_alone_are_planned_once(planned: list[int]) -> None:
    alike, labelled = Workloads(), Workloads()
    for number in range(40):
        alike.add(f"web-{number:02d}", 1, shape(1900, 3 * GI, labels={"app": "web"}))
        labelled.add(f"web-{number:02d}", 1, shape(1900, 3 * GI, labels={"app": f"web-{number}"}))
    one = best_plan(problem(alike, dear_giant()), EFFORT)
    groups_of_one = [pods for pods in planned if pods < len(alike.pods)]
    planned.clear()
    many = best_plan(problem(labelled, dear_giant()), EFFORT)
    assert [pods for pods in planned if pods < len(labelled.pods)] == groups_of_one
    assert price(many) == price(one)


def test_a_run_of_the_schedulers_model_costs_a_look_at_each_node_for_each_shape_or_scored_pod() -> None:
    work = Workloads().add("plain", 5, shape(100)).add("web", 5, spread(100))
    assert binding_touches(problem(work, ladder(4))) == 1 + 5


@pytest.mark.parametrize("nominations", [True, False])
def test_effort_that_the_search_for_node_sets_may_not_spend_is_not_told_as_spent(nominations: bool) -> None:
    asked = problem(Workloads().add("web", 1, shape(300, GI)), ladder(2), nominations=nominations)
    assert 0 < best_plan(asked, EFFORT).touches < 1_000
