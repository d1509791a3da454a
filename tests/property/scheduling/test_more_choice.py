"""More to choose from never leaves more pods pending: another NodePool, another instance type.

What can make it so by its nature is left out of these problems:

* limits (the first pods may spend them on the larger type) and minValues;
* NodePools of more weight than those that are there: their nodes come first, whatever they are;
* labels that only pods define (S-17): whether one that asks for a value finds a claim that another one gave the label
  depends on how pods are grouped;
* spreads that count domains which their pods cannot reach (policy Ignore).

Where pods must be together, apart or even, a problem is planned again in other ways (`first_plan`): a pod that could
not be placed before may now be the first, and keep two others away, or begin where those that follow it cannot go. That
search is bounded, and so the property is nearly always true (what is left stands in docs/roadmap.md). So its examples
are the same in every run.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.optimizer.first_plan.first_plan import first_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.judges.plans import faults
from tests.support.strategies.examples import examples
from tests.support.strategies.more_choice import pair
from tests.support.strategies.plans import catalogues, pools, relaxed_settings
from tests.support.strategies.plans import problems as plain_problems
from tests.support.strategies.topology import problems as topology_problems

the_same_examples = settings(
    max_examples=examples(300), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def unlimited(pool: NodePool) -> NodePool:
    return replace(pool, limits=None, requirements=tuple(replace(r, min_values=None) for r in pool.requirements))


def tame(given: PodShape) -> PodShape:
    terms = tuple(t for t in given.required_terms if all(expression.key != "foo" for expression in t.expressions))
    spread = tuple(replace(s, node_affinity_policy="Honor", node_taints_policy="Honor") for s in given.spread)
    return replace(given, required_terms=terms, spread=spread)


def freed(problem: Problem) -> Problem:
    pools = tuple(replace(pool, pool=unlimited(pool.pool)) for pool in problem.pools)
    return replace(problem, pools=pools, shapes={digest: tame(shape) for digest, shape in problem.shapes.items()})


def pending(planned: Plan) -> set[str]:
    return {uid for group in planned.unplaced for uid in group.pods}


def with_types(problem: Problem, extra: Catalogue) -> Problem:
    """The same with further types, named apart."""
    more = tuple(replace(instance_type, name=f"x-{instance_type.name}") for instance_type in extra.types)
    known = {digest: Catalogue((*catalogue.types, *more)) for digest, catalogue in problem.catalogues.items()}
    return replace(problem, catalogues=known)


def with_pool(problem: Problem, extra: NodePool) -> Problem:
    added = replace(problem.pools[0], pool=replace(unlimited(extra), name="zz-extra", weight=0), usage={})
    return replace(problem, pools=(*problem.pools, added))


@given(plain_problems(), catalogues())
@relaxed_settings
def test_another_instance_type_leaves_no_more_pods_pending(given_problem: Problem, extra: Catalogue) -> None:
    problem = freed(given_problem)
    assert len(pending(plan(with_types(problem, extra)))) <= len(pending(plan(problem)))


@given(plain_problems(), pools())
@relaxed_settings
def test_another_nodepool_leaves_no_more_pods_pending(given_problem: Problem, extra: list[NodePool]) -> None:
    problem = freed(given_problem)
    assert len(pending(plan(with_pool(problem, extra[0])))) <= len(pending(plan(problem)))


def with_more(problem: Problem, types: Catalogue, more_pools: list[NodePool]) -> Problem:
    """Several of both at once."""
    made = with_types(problem, types)
    for number, more_pool in enumerate(more_pools):
        extra = replace(unlimited(more_pool), name=f"{'az'[number % 2]}-extra-{number}", weight=0)
        made = replace(made, pools=(*made.pools, replace(made.pools[0], pool=extra, usage={})))
    return made


several_pools = st.lists(pools(), max_size=3).map(lambda found: [pool for some in found for pool in some])


@pytest.mark.slow
@given(topology_problems(), catalogues())
@the_same_examples
def test_where_pods_depend_on_one_another_another_type_leaves_no_more_pending(found: Problem, extra: Catalogue) -> None:
    problem = freed(found)
    more = with_types(problem, Catalogue(extra.types[:1]))
    assert len(pending(first_plan(more)[1])) <= len(pending(first_plan(problem)[1]))


@pytest.mark.slow
@given(topology_problems(), pools())
@the_same_examples
def test_where_pods_depend_on_one_another_another_nodepool_leaves_no_more_pending(
    found: Problem, extra: list[NodePool]
) -> None:
    problem = freed(found)
    assert len(pending(first_plan(with_pool(problem, extra[0]))[1])) <= len(pending(first_plan(problem)[1]))


@pytest.mark.slow
@given(topology_problems(), catalogues(), several_pools)
@the_same_examples
def test_several_types_and_nodepools_at_once_leave_no_more_pending(
    found: Problem, types: Catalogue, more_pools: list[NodePool]
) -> None:
    problem = freed(found)
    more = with_more(problem, types, more_pools)
    planned = first_plan(more)[1]
    assert len(pending(planned)) <= len(pending(first_plan(problem)[1]))


# ── workloads as they are ──────────────────────────────────────


WORSE = {"some pods": {53: (0, 1)}, "a hundred": {1: (37, 39)}}
"""Where more choice does leave more pods pending: how many without it and with it, by seed. One that does so no more
fails the test, too."""
JUDGED = 500
"""The judge takes minutes for more pods."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "workloads", "replicas"),
    [(range(70), 4, 7), (range(10), 12, 20), (range(4), 50, 60)],
    ids=["some pods", "a hundred", "more than a thousand"],
)
def test_more_of_everything_leaves_no_more_pending_and_the_plan_is_valid(
    request: pytest.FixtureRequest, seeds: range, workloads: int, replicas: int
) -> None:
    worse = {}
    for seed in seeds:
        problem, more = pair(seed, workloads, replicas)
        planned = first_plan(more)[1]
        without, with_more = len(pending(first_plan(problem)[1])), len(pending(planned))
        if with_more > without:
            worse[seed] = without, with_more
        assert len(more.pods) >= JUDGED or faults(more, planned) == [], f"seed {seed}"
    assert worse == WORSE.get(request.node.callspec.id, {})
