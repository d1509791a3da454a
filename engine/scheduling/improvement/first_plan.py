"""The plan that a search begins with: the planner's own, or that of a question put otherwise where topology went wrong.

Two things are known too late when pods are placed one after another: in which domain a node will be whose pods are
counted there, and that a node of some NodePool, or of some type, is where those that follow cannot go, or keeps them
away. Such a problem is planned again: with nodes settled at once, and without NodePools and types. So what there is to
choose from besides hardly ever leaves more pods pending: without it the plan is the one that there was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, islice

from msgspec.structs import replace

from kerf.engine.scheduling.improvement.bindable import bindable
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan, usable_pools
from kerf.engine.scheduling.problem import Problem
from kerf.engine.scheduling.reasons import Code

MOST_PODS = 1_000
"""Larger problems are planned once."""
MOST_LEFT_OUT = 8
"""So many NodePools, and so many types, are tried to be left out: singly, then two of them, and so on."""
MOST_QUESTIONS, MOST_ASKED = 32, 8_000
"""So often a problem is planned again, and of so many pods in all of these plans."""


def first_plan(problem: Problem) -> tuple[Problem, Plan]:
    """The question that was answered in the end, and its plan. Of the highest priority of which not as many pods are
    pending as in the planner's own, fewer are; it may be more of a lower one."""
    best = problem, plan(problem)
    if len(problem.pods) >= MOST_PODS or not _wrong(best[1]):
        return best
    if best[1].uneven and bindable(problem, best[1]):
        best = problem, replace(best[1], uneven=False)
    for question in _otherwise(problem, best[1]):
        made = plan(question)
        if _worth(problem, made) < _worth(problem, best[1]):
            best = question, made
            if not _wrong(made):
                break
    return best


def _otherwise(problem: Problem, made: Plan) -> Iterator[Problem]:
    if made.uneven:
        yield replace(problem, careful=True)
    if _pending(made):
        yield from islice(_without(problem, made), min(MOST_QUESTIONS, MOST_ASKED // len(problem.pods)))


def _without(problem: Problem, made: Plan) -> Iterator[Problem]:
    """Without NodePools, and without types that led to where the nodes of the plan are: those cheapest for them."""
    pools = [each.pool.name for each in usable_pools(problem.pools)]
    types = list(dict.fromkeys(each.instance_types[0] for each in made.claims))
    things = [*((name, "") for name in pools[:MOST_LEFT_OUT]), *(("", name) for name in types[:MOST_LEFT_OUT])]
    for count in range(1, len(things) + 1):
        for chosen in combinations(things, count):
            gone = {pool for pool, _ in chosen}
            if not gone.issuperset(pools):
                yield replace(
                    problem,
                    pools=tuple(each for each in problem.pools if each.pool.name not in gone),
                    unavailable=problem.unavailable | {("", name, "") for _, name in chosen if name},
                )


def _wrong(made: Plan) -> bool:
    return made.uneven or _pending(made)


def _pending(made: Plan) -> bool:
    """Whether topology keeps some pod pending."""
    return any(each.code == Code.TOPOLOGY for group in made.unplaced for each in group.reasons)


def _worth(problem: Problem, made: Plan) -> tuple[tuple[int, ...], bool]:
    """Less is better: how many pods are pending, of the highest priority first, those of buffers last."""
    ranks = {pod.uid: (not pod.virtual, problem.shapes[pod.shape].priority) for pod in problem.pods}
    left = Counter(ranks[uid] for each in made.unplaced for uid in each.pods)
    return tuple(left[rank] for rank in sorted(set(ranks.values()), reverse=True)), made.uneven
