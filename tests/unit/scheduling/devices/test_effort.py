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
            replace(
                offered_type,
                offerings=tuple(replace(offer, price=prices[offered_type.name]) for offer in offered_type.offerings),
            )
            for offered_type in (small, large, dear)
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
    held = [opened for opened in first.claims if "a-0" in opened.pods]
    assert [opened for opened in best.claims if "a-0" in opened.pods] == held
    assert (
        sum(opened.price for opened in best.claims) < best.first_price == sum(opened.price for opened in first.claims)
    )
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
    assert [opened.left[0].instance_type for opened in funnel.claims] == [
        opened.instance_types[0] for opened in best.claims
    ]


def test_a_plan_with_nothing_but_devices_is_as_it_is() -> None:
    problem = question([claim("c")], {"a": ["c"]}, offered())
    assert best_plan(problem, 100) == plan(problem)
