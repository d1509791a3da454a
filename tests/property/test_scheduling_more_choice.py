"""More to choose from never leaves more pods pending: another NodePool, another instance type.

What can make it so by its nature is left out of these problems:

* limits (the first pods may spend them on the larger type) and minValues;
* NodePools of more weight than those that are there: their nodes come first, whatever they are;
* labels that only pods define (S-17): whether one that asks for a value finds a claim that another one gave the label
  depends on how pods are grouped;
* spreads that count domains which their pods cannot reach (policy Ignore);
* pod affinity and anti-affinity: a pod that could not be placed before may now be the first, and keep two others away,
  or begin where those that follow it cannot go. To choose whom to place is another question than how to place them;
* spreads with a further NodePool: they must stay even over the domains that it adds. That this leaves more pods pending
  is rare, and known. Other ones of equal domains (`Problem.variant`) help in none of the cases found.
"""

from __future__ import annotations

from hypothesis import given
from msgspec.structs import replace

from kerf.engine.model.instances import Catalogue
from kerf.engine.model.pods import PodShape
from kerf.engine.model.pools import NodePool
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem import Problem
from tests.property.test_scheduling_plans import catalogues, pools, relaxed_settings
from tests.property.test_scheduling_plans import problems as plain_problems
from tests.property.test_scheduling_topology import problems as topology_problems


def unlimited(pool: NodePool) -> NodePool:
    return replace(pool, limits=None, requirements=tuple(replace(r, min_values=None) for r in pool.requirements))


def tame(given: PodShape) -> PodShape:
    terms = tuple(t for t in given.required_terms if all(each.key != "foo" for each in t.expressions))
    spread = tuple(replace(s, node_affinity_policy="Honor", node_taints_policy="Honor") for s in given.spread)
    return replace(given, required_terms=terms, spread=spread)


def freed(problem: Problem) -> Problem:
    pools = tuple(replace(each, pool=unlimited(each.pool)) for each in problem.pools)
    return replace(problem, pools=pools, shapes={digest: tame(each) for digest, each in problem.shapes.items()})


def only_spread(problem: Problem) -> Problem:
    shapes = {digest: replace(each, affinity=(), anti_affinity=()) for digest, each in problem.shapes.items()}
    return replace(problem, shapes=shapes)


def pending(planned: Plan) -> set[str]:
    return {uid for group in planned.unplaced for uid in group.pods}


def with_types(problem: Problem, extra: Catalogue) -> Problem:
    """The same with further types, named apart."""
    more = tuple(replace(each, name=f"x-{each.name}") for each in extra.types)
    known = {digest: Catalogue((*each.types, *more)) for digest, each in problem.catalogues.items()}
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


@given(topology_problems(), catalogues())
@relaxed_settings
def test_with_spreads_another_instance_type_leaves_no_more_pods_pending(problem: Problem, extra: Catalogue) -> None:
    problem = only_spread(freed(problem))
    assert len(pending(plan(with_types(problem, extra)))) <= len(pending(plan(problem)))
