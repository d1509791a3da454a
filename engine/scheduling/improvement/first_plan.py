"""The plan that a search begins with: the planner's own, or that of a question put otherwise where topology went wrong.

Two things are known too late when pods are placed one after another: in which domain a node will be whose pods are
counted there, and that a node of some NodePool is where those that follow cannot go. Such a problem is planned again.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kerf.engine.scheduling.improvement.bindable import bindable
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan, usable_pools
from kerf.engine.scheduling.problem import Problem
from kerf.engine.scheduling.reasons import Code

MOST_PODS = 1_000
"""Larger problems are planned once."""
MOST_POOLS = 8
"""So many NodePools are tried to be left out."""


def first_plan(problem: Problem) -> tuple[Problem, Plan]:
    """The question that was answered in the end, and its plan. No fewer pods have a place than in the planner's own."""
    best = problem, plan(problem)
    if len(problem.pods) >= MOST_PODS or not (best[1].uneven or _pending(best[1])):
        return best
    if best[1].uneven and bindable(problem, best[1]):
        best = problem, replace(best[1], uneven=False)
    for question in _otherwise(problem, best[1]):
        made = plan(question)
        if _worth(made) < _worth(best[1]) and best[1].placed <= made.placed:
            best = question, made
    return best


def _otherwise(problem: Problem, made: Plan) -> Iterator[Problem]:
    if made.uneven:
        yield replace(problem, careful=True)
    if _pending(made):
        pools = usable_pools(problem.pools)
        for gone in pools[:MOST_POOLS] if len(pools) > 1 else ():
            yield replace(problem, pools=tuple(each for each in problem.pools if each.pool.name != gone.pool.name))


def _pending(made: Plan) -> bool:
    """Whether topology keeps some pod pending."""
    return any(each.code == Code.TOPOLOGY for group in made.unplaced for each in group.reasons)


def _worth(made: Plan) -> tuple[int, bool]:
    return sum(len(each.pods) for each in made.unplaced), made.uneven
