"""The plan that the optimizer begins with: the planner's own, or a better one where topology left pods pending.

The planner places pods one after another, so a topology rule can fail that another order would have met. Then the
problem is changed a little (`problem_changes`) and planned again, starting each time from the best plan so far, until
no change helps or the retries are used up. A retry almost never leaves more pods pending: without one that helps, the
planner's own plan stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.scheduling.kube_scheduler.plan_binding import PlanBinding
from kerf.engine.scheduling.optimizer.first_plan.problem_changes import (
    LARGE_PROBLEM,
    ProblemChange,
    combined_changes,
    pending_by_topology,
    single_changes,
)
from kerf.engine.scheduling.optimizer.first_plan.related_pods import problem_of_related_pods
from kerf.engine.scheduling.optimizer.first_plan.unplaceable_pods import UnplaceablePods
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import LeftOut, Problem

MAX_RETRIES, MAX_PODS_REPLANNED = 40, 8_000
"""So often a problem is planned again, and of so many pods in all of these plans."""
MIN_RETRIES, MAX_PODS_OF_PROBLEM = 3, 10_000
"""But at least so often up to the largest problems, whose pods are many."""


def first_plan(problem: Problem) -> tuple[Problem, Plan]:
    """The question that was answered in the end, and its plan. Of the highest priority of which not as many pods are
    pending as in the planner's own, or cannot be bound, fewer are; it may be more of a lower one."""
    made = plan(problem)
    uneven, waiting = made.uneven and len(problem.pods) < LARGE_PROBLEM, pending_by_topology(made)
    if not uneven and not waiting:
        return problem, made
    beyond_help = UnplaceablePods(problem, made)
    waiting -= beyond_help.of(made)
    if not uneven and not waiting:
        return problem, made
    asking = _Retries(problem, made, beyond_help)
    return asking.best() if len(problem.pods) < LARGE_PROBLEM else _for_many_pods(problem, made, waiting, asking)


def _for_many_pods(problem: Problem, made: Plan, waiting: frozenset[str], asking: _Retries) -> tuple[Problem, Plan]:
    """What helps the pods that are pending is found out without those that have nothing to do with them, who then come
    after them all; what helps nobody there helps nobody here."""
    part = problem_of_related_pods(problem, waiting)
    if len(part.pods) < len(problem.pods):
        own = plan(part)
        found = _Retries(part, own, UnplaceablePods(part, own))
        if found.best()[1].placed.isdisjoint(waiting):
            return problem, made
        uids = frozenset(each.uid for each in part.pods)
        asking.ask(replace(found.change, ahead=(uids, *found.change.ahead)))
    return asking.best()


def _max_retries(problem: Problem) -> int:
    few = MIN_RETRIES if len(problem.pods) <= MAX_PODS_OF_PROBLEM else 0
    return min(MAX_RETRIES, max(MAX_PODS_REPLANNED // len(problem.pods), few))


class _Attempt(Struct, frozen=True):
    """A plan, the change it was made with, whether pods of it are stuck, how many are left over by that, of each
    priority, and which of those that are pending are so in any plan."""

    change: ProblemChange
    plan: Plan
    stuck: bool
    left: tuple[int, ...]
    beyond_help: frozenset[str]


class _Retries:
    """Puts one question in other ways, so often as `_max_retries` says."""

    def __init__(self, problem: Problem, made: Plan, beyond_help: UnplaceablePods) -> None:
        self._problem = problem
        self._binding = (
            PlanBinding(problem) if len(problem.pods) < LARGE_PROBLEM else None
        )  # what cannot be bound is found out
        self._beyond_help = beyond_help
        self._best = self._judged(ProblemChange(problem.careful, problem.variant), made)
        self._asked = {self._best.change}
        self._left = _max_retries(problem)
        self._least = len(_unplaced(made)) - len(pending_by_topology(made))

    @property
    def change(self) -> ProblemChange:
        return self._best.change

    def best(self) -> tuple[Problem, Plan]:
        tried = [single_changes(self._problem, self._best.change, self._best.plan)]
        while tried and not self._done:
            change = next(tried[-1], None)
            if change is None:
                tried.pop()
            elif self.ask(change):
                tried.append(single_changes(self._problem, self._best.change, self._best.plan))
        for change in combined_changes(self._problem, self._best.change, self._best.plan):
            if self._done:
                break
            self.ask(change)
        return self._told()

    def _told(self) -> tuple[Problem, Plan]:
        """With reasons that are about all NodePools and types, those that are left out, too."""
        change, made = self._best.change, self._best.plan
        question = change.of(self._problem)
        if not made.unplaced or not (change.pools or change.offerings):
            return question, made
        pools = tuple(each for each in self._problem.pools if each.pool.name in change.pools)
        question = replace(question, left_out=LeftOut(pools, change.offerings - self._problem.unavailable))
        return question, replace(made, unplaced=plan(question).unplaced)

    @property
    def _done(self) -> bool:
        """Whether nothing may be asked any more, or only those are pending that would be anyhow."""
        best = self._best
        uneven = self._binding is not None and best.plan.uneven
        done = sum(best.left) <= self._least or pending_by_topology(best.plan) <= best.beyond_help
        return self._left <= 0 or (done and not uneven)

    def ask(self, change: ProblemChange) -> bool:
        """Whether it leaves fewer pending, or what the scheduler binds whole."""
        if change in self._asked or self._left <= 0:
            return False
        self._asked.add(change)
        self._left -= 1
        made = plan(change.of(self._problem))
        if _by_priority(self._problem, _unplaced(made)) > self._best.left:
            return False
        found = self._judged(change, made)
        better = (found.left, found.plan.uneven) < (self._best.left, self._best.plan.uneven)
        if better and found.stuck <= self._best.stuck:
            self._best = found
            return True
        # what cannot be bound may be if nodes are settled at once
        return found.stuck and not change.careful and self.ask(replace(change, careful=True))

    def _judged(self, change: ProblemChange, made: Plan) -> _Attempt:
        left = self._binding.stuck(made) if self._binding is not None else []
        if made.uneven and self._binding is not None and not left:
            made = replace(made, uneven=False)
        by_priority = _by_priority(self._problem, (*_unplaced(made), *left))
        return _Attempt(change, made, bool(left), by_priority, self._beyond_help.of(made))


def _unplaced(made: Plan) -> list[str]:
    return [uid for each in made.unplaced for uid in each.pods]


def _by_priority(problem: Problem, uids: Iterable[str]) -> tuple[int, ...]:
    """How many of the pods are of each priority, the highest first, those of buffers last. Less is better."""
    ranks = {pod.uid: (not pod.virtual, problem.shapes[pod.shape].priority) for pod in problem.pods}
    left = Counter(ranks[uid] for uid in uids)
    return tuple(left[rank] for rank in sorted(set(ranks.values()), reverse=True))
