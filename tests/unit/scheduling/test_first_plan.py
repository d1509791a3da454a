"""Plans that are made again because topology went wrong in the first one (S-134)."""

from __future__ import annotations

from kerf.engine.model import labels as lbl
from kerf.engine.model.pods import Selector, SpreadConstraint
from kerf.engine.scheduling.improvement.best import best_plan
from kerf.engine.scheduling.improvement.bindable import bindable
from kerf.engine.scheduling.improvement.first_plan import MOST_PODS, first_plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem import Problem
from tests.support.judge import faults
from tests.unit.scheduling.problems import Workloads, ladder, problem, shape

APP = {"app": "x"}


def spread(key: str, skew: int = 1) -> SpreadConstraint:
    return SpreadConstraint(key, skew, "DoNotSchedule", Selector(APP))


def over_two_keys(beside: int, zonal: int) -> Problem:
    """Large pods one to a node, wherever that is; small ones that count them by zones."""
    work = Workloads().add("large", beside, shape(1500, labels=APP, spread=(spread(lbl.HOSTNAME, 2),)))
    work.add("small", zonal, shape(100, labels=APP, spread=(spread(lbl.ZONE),)))
    return problem(work, ladder(2, 4))


def uneven_problem() -> Problem:
    asked = [over_two_keys(large, small) for large in range(2, 9) for small in range(1, 6)]
    return next(each for each in asked if faults(each, plan(each)))


def test_s134_pods_that_were_counted_too_late_are_planned_for_again() -> None:
    asked = uneven_problem()
    assert plan(asked).uneven
    assert not bindable(asked, plan(asked))
    question, made = first_plan(asked)
    assert question.careful
    assert not made.uneven
    assert faults(asked, made) == []
    assert faults(asked, best_plan(asked, 100)) == []


def test_a_plan_that_can_be_bound_after_all_stays() -> None:
    asked = over_two_keys(1, 2)
    assert bindable(asked, plan(asked))
    question, made = first_plan(asked)
    assert not question.careful
    assert made.claims == plan(asked).claims


def test_a_large_problem_is_planned_once() -> None:
    asked = over_two_keys(8, MOST_PODS)
    assert first_plan(asked) == (asked, plan(asked))
