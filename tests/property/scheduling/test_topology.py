"""Plans of random problems with topology: valid by the judge, independent of the order in which things are listed."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.optimizer.first_plan.first_plan import first_plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.judges.plans import faults
from tests.support.scenarios.shuffle import shuffled
from tests.support.strategies.examples import examples
from tests.support.strategies.topology import problems

relaxed_settings = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(problems())
@relaxed_settings
def test_every_plan_is_valid_by_the_judge(given_problem: Problem) -> None:
    """Of a plan that says that not all of its pods may be bound, the one that is made instead is judged."""
    planned = plan(given_problem)
    if planned.uneven:
        planned = first_plan(given_problem)[1]
    if not planned.uneven:
        assert faults(given_problem, planned) == []
    assert all(group.reasons for group in planned.unplaced)


@pytest.mark.slow
@given(problems(), st.randoms(use_true_random=False))
@relaxed_settings
def test_the_order_in_which_things_are_listed_does_not_matter(given_problem: Problem, shuffle: random.Random) -> None:
    other = shuffled(given_problem, shuffle)
    assert plan(other) == plan(given_problem)


@given(problems())
@relaxed_settings
def test_a_tracer_changes_nothing(given_problem: Problem) -> None:
    assert plan(given_problem, FunnelTracer()) == plan(given_problem)
