"""Plans that are made again because topology went wrong in the first one (S-134)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instances import Catalogue
from kerf.engine.model.pods import AffinityTerm, Selector, SpreadConstraint
from kerf.engine.scheduling.improvement.best import best_plan
from kerf.engine.scheduling.improvement.bindable import bindable
from kerf.engine.scheduling.improvement.first_plan import MOST_ASKED, MOST_PODS, _otherwise, first_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem import Problem
from tests.support.judge import faults
from tests.unit.scheduling.problems import Workloads, instance_type, ladder, problem, shape

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


# ── without what made the difference ──────────────────────────────────────


def apart(key: str, app: str) -> tuple[AffinityTerm, ...]:
    return (AffinityTerm(key, Selector({"app": app})),)


def wide() -> Problem:
    """One large pod that keeps three small ones out of its zone, which they have to be in. Only the type `huge`
    holds it."""
    large = shape(30_000, labels={"app": "large"}, anti_affinity=apart(lbl.ZONE, "small"), node_selector=IN_Z1)
    work = Workloads().add("large", 1, large)
    work.add("small", 3, shape(100, labels={"app": "small"}, node_selector=IN_Z1))
    return problem(work, Catalogue((instance_type("small", 4), instance_type("huge", 32))))


IN_Z1 = {lbl.ZONE: "z1"}
WITHOUT_HUGE = Catalogue((instance_type("small", 4),))


def left(made: Plan) -> set[str]:
    return {uid for group in made.unplaced for uid in group.pods}


def test_s134_a_type_that_would_leave_more_pods_pending_is_left_out() -> None:
    """With it the large pod comes first and keeps out three."""
    asked = wide()
    assert left(plan(asked)) == {"small-0", "small-1", "small-2"}
    question, made = first_plan(asked)
    assert left(made) == {"large-0"}
    assert question.unavailable == {("", "huge", "")}
    assert faults(asked, made) == []
    assert best_plan(asked, 100).unplaced == made.unplaced
    fewer = replace(asked, catalogues=dict.fromkeys(asked.catalogues, WITHOUT_HUGE))
    assert left(first_plan(fewer)[1]) == left(made), "as if there were no such type"


def test_s134_of_pods_of_unequal_priority_the_higher_one_keeps_its_place() -> None:
    asked = wide()
    first = next(digest for digest, each in asked.shapes.items() if each.labels["app"] == "large")
    shapes = {**asked.shapes, first: replace(asked.shapes[first], priority=1_000)}
    assert left(first_plan(replace(asked, shapes=shapes))[1]) == {"small-0", "small-1", "small-2"}


def test_s134_questions_are_bounded() -> None:
    """Pods that topology keeps pending whatever is left out: no more than so many plans are made for them."""
    work = Workloads().add("w", 400, shape(100, labels=APP, anti_affinity=apart(lbl.HOSTNAME, "nobody")))
    work.add("x", 1, shape(100, affinity=apart(lbl.ZONE, "nobody")))
    asked = problem(work, ladder(1, 2, 4, 8))
    asked_again = list(_otherwise(asked, plan(asked)))
    assert 0 < len(asked_again) <= MOST_ASKED // 401
