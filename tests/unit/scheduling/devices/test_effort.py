"""What effort does with devices: pods that have some keep their nodes, the others get cheaper ones beside them."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.judges.plans import Judge
from tests.support.scenarios.device_problems import claim, gpu, question, template
from tests.support.scenarios.problems import instance_type

PLAIN = [f"plain{number}" for number in range(6)]


def offered() -> Catalogue:
    """A small type that is cheap for what it has, a large one that first-fit fills, and a dear one with a GPU."""
    small, large = instance_type("small", 2), instance_type("large", 16)
    dear = replace(instance_type("gpu", 4), slices=template(gpu("g0")))
    prices = {"small": 0.02, "large": 1.0, "gpu": 2.0}
    return Catalogue(
        tuple(
            replace(each, offerings=tuple(replace(offer, price=prices[each.name]) for offer in each.offerings))
            for each in (small, large, dear)
        )
    )


def given(**limits: int) -> Problem:
    """One pod that wants a GPU and fills its node, and six that want none."""
    asked = question([claim("c")], {"a": ["c"], **dict.fromkeys(PLAIN, ())}, offered(), cpu=1900)
    if not limits:
        return asked
    pools = tuple(replace(pool, pool=replace(pool.pool, limits=dict(limits))) for pool in asked.pools)
    return replace(asked, pools=pools)


def test_effort_is_spent_on_pods_that_ask_for_no_devices() -> None:
    problem = given()
    first, best = plan(problem), best_plan(problem, 100)
    held = [each for each in first.claims if "a-0" in each.pods]
    assert [each for each in best.claims if "a-0" in each.pods] == held
    assert sum(each.price for each in best.claims) < best.first_price == sum(each.price for each in first.claims)
    assert best.placed == first.placed
    assert Judge(problem, best).faults() == []


def test_s68_what_has_devices_counts_against_the_limits_of_the_others() -> None:
    problem = given(nodes=3)
    best = best_plan(problem, 100)
    assert len(best.claims) <= 3
    assert Judge(problem, best).faults() == []


def test_the_trace_is_of_the_plan_that_was_made() -> None:
    problem = given()
    tracer = FunnelTracer()
    best = best_plan(problem, 100, tracer)
    assert best == best_plan(problem, 100)
    funnel = tracer.funnel
    assert [each.left[0].instance_type for each in funnel.claims] == [each.instance_types[0] for each in best.claims]


def test_a_plan_with_nothing_but_devices_is_as_it_is() -> None:
    problem = question([claim("c")], {"a": ["c"]}, offered())
    assert best_plan(problem, 100) == plan(problem)
