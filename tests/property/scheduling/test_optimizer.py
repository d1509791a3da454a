"""Plans improved within an effort: valid, nothing more left over, the same whatever the order, and dearer only where
the first plan would leave pods unbound."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.linear_relaxation import PricedNode, resource_prices
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.judges.slow_planner import violations
from tests.support.scenarios.shuffle import shuffled
from tests.support.strategies.plans import problems, relaxed_settings

EFFORT = 60
TOLERANCE = 1e-9


def price(planned: Plan) -> float:
    return math.fsum(claim.price for claim in planned.claims)


def left_over(planned: Plan) -> set[str]:
    return {uid for group in (*planned.unplaced, *planned.ignored) for uid in group.pods}


def left_by_habit(problem: Problem, planned: Plan) -> tuple[str, ...]:
    """The pods that are left over by the first habit of the scheduler by which some are."""
    by_habit = [unbound_pods(problem, planned, habit) for habit in SCHEDULER_VARIANTS]
    return next((placements for placements in by_habit if placements), ())


@pytest.mark.slow
@given(problems())
@relaxed_settings
def test_an_improved_plan_is_valid_leaves_no_more_over_and_is_dearer_only_to_bind_whole(given_problem: Problem) -> None:
    first, best = plan(given_problem), best_plan(given_problem, EFFORT)
    assert violations(given_problem, first) == []
    assert violations(given_problem, best) == []
    assert left_over(best) <= left_over(first)
    assert price(best) <= price(first) + TOLERANCE or (left_by_habit(given_problem, first) and not best.unbound)
    assert best.lower_bound <= price(best) + TOLERANCE
    if best.rated:
        assert best.unbound == left_by_habit(given_problem, best)
    if first.claims:
        assert best.rated
        assert abs(best.first_price - price(first)) <= TOLERANCE


@given(problems())
@relaxed_settings
def test_the_bound_holds_for_the_first_plan_too(given_problem: Problem) -> None:
    """The pods on new nodes are mostly the same, and where they are, so is the bound."""
    first, best = plan(given_problem), best_plan(given_problem, EFFORT)
    same = {uid for c in first.claims for uid in c.pods} == {uid for c in best.claims for uid in c.pods}
    assert not same or best.lower_bound <= price(first) + TOLERANCE


@given(problems())
@relaxed_settings
def test_without_effort_it_is_the_first_plan(given_problem: Problem) -> None:
    assert best_plan(given_problem, 0) == plan(given_problem)


@pytest.mark.slow
@given(problems(), st.randoms(use_true_random=False))
@relaxed_settings
def test_the_order_in_which_things_are_listed_does_not_matter(given_problem: Problem, shuffle: random.Random) -> None:
    other = shuffled(given_problem, shuffle)
    assert best_plan(other, EFFORT) == best_plan(given_problem, EFFORT)


@pytest.mark.slow
@given(problems())
@relaxed_settings
def test_a_tracer_changes_nothing_and_knows_every_claim(given_problem: Problem) -> None:
    tracer = FunnelTracer()
    best = best_plan(given_problem, EFFORT, tracer)
    assert best == best_plan(given_problem, EFFORT)
    assert [funnel.claim for funnel in tracer.funnel.claims] == list(range(len(best.claims)))
    for number, claim in enumerate(best.claims):
        told = {
            uid
            for pod_class in tracer.funnel.classes
            for place, pods in pod_class.placed
            if place == number
            for uid in pods
        }
        assert told == set(claim.pods)
        assert [option.instance_type for option in tracer.funnel.claims[number].left] == list(claim.instance_types)


rows = st.lists(
    st.builds(PricedNode, st.floats(0.01, 10.0), st.tuples(st.integers(0, 64), st.integers(0, 64), st.integers(0, 64))),
    max_size=8,
)


@given(rows, st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)))
def test_no_set_of_nodes_that_covers_the_demand_costs_less_than_it_is_worth(
    given_rows: list[PricedNode], demand: tuple[int, int, int]
) -> None:
    """Held against the cheapest of all sets of up to four nodes."""
    bound = resource_prices(given_rows, demand).total
    bought: dict[tuple[int, ...], float] = {(0, 0, 0): 0.0}
    for _ in range(4):
        for have, cost in list(bought.items()):
            for row in given_rows:
                total = tuple(min(a + b, 64) for a, b in zip(have, row.amounts, strict=True))
                bought[total] = min(cost + row.price, bought.get(total, math.inf))
    covers = [cost for have, cost in bought.items() if all(a >= b for a, b in zip(have, demand, strict=True))]
    assert bound <= min(covers, default=math.inf) + TOLERANCE


@given(rows, st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)))
def test_a_node_that_has_no_more_than_another_that_costs_no_more_does_not_change_the_bound(
    given_rows: list[PricedNode], demand: tuple[int, int, int]
) -> None:
    kept: list[PricedNode] = []
    for row in sorted(given_rows, key=lambda row: row.price):
        if not any(all(a <= b for a, b in zip(row.amounts, other.amounts, strict=True)) for other in kept):
            kept.append(row)
    assert math.isclose(
        resource_prices(kept, demand).total, resource_prices(given_rows, demand).total, abs_tol=TOLERANCE
    )
