"""The plan that a search begins with: the planner's own, or that of a question put otherwise where topology went wrong.

What may help is tried from the best plan so far, one change after another (see `changes`), until none helps or the work
is done. So what there is to choose from besides hardly ever leaves more pods pending: without it the plan is the one
that there was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.scheduling.kube_scheduler.plan_binding import Binding
from kerf.engine.scheduling.optimizer.first_plan.problem_changes import (
    LARGE,
    Change,
    changes,
    further,
    kept_by_topology,
)
from kerf.engine.scheduling.optimizer.first_plan.related_pods import concerned
from kerf.engine.scheduling.optimizer.first_plan.unplaceable_pods import BeyondHelp
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import LeftOut, Problem

MOST_QUESTIONS, MOST_ASKED = 40, 8_000
"""So often a problem is planned again, and of so many pods in all of these plans."""
FEW_QUESTIONS, LARGEST = 3, 10_000
"""But at least so often up to the largest problems, whose pods are many."""


def first_plan(problem: Problem) -> tuple[Problem, Plan]:
    """The question that was answered in the end, and its plan. Of the highest priority of which not as many pods are
    pending as in the planner's own, or cannot be bound, fewer are; it may be more of a lower one."""
    made = plan(problem)
    uneven, waiting = made.uneven and len(problem.pods) < LARGE, kept_by_topology(made)
    if not uneven and not waiting:
        return problem, made
    beyond_help = BeyondHelp(problem, made)
    waiting -= beyond_help.of(made)
    if not uneven and not waiting:
        return problem, made
    asking = _Asking(problem, made, beyond_help)
    return asking.best() if len(problem.pods) < LARGE else _of_many(problem, made, waiting, asking)


def _of_many(problem: Problem, made: Plan, waiting: frozenset[str], asking: _Asking) -> tuple[Problem, Plan]:
    """What helps the pods that are pending is found out without those that have nothing to do with them, who then come
    after them all; what helps nobody there helps nobody here."""
    part = concerned(problem, waiting)
    if len(part.pods) < len(problem.pods):
        own = plan(part)
        found = _Asking(part, own, BeyondHelp(part, own))
        if found.best()[1].placed.isdisjoint(waiting):
            return problem, made
        uids = frozenset(each.uid for each in part.pods)
        asking.ask(replace(found.change, ahead=(uids, *found.change.ahead)))
    return asking.best()


def _questions(problem: Problem) -> int:
    few = FEW_QUESTIONS if len(problem.pods) <= LARGEST else 0
    return min(MOST_QUESTIONS, max(MOST_ASKED // len(problem.pods), few))


class _Answer(Struct, frozen=True):
    """A plan, the change it was made with, whether pods of it are stuck, how many are left over by that, of each
    priority, and which of those that are pending are so in any plan."""

    change: Change
    plan: Plan
    stuck: bool
    left: tuple[int, ...]
    beyond_help: frozenset[str]


class _Asking:
    """Puts one question in other ways, so often as `_questions` says."""

    def __init__(self, problem: Problem, made: Plan, beyond_help: BeyondHelp) -> None:
        self._problem = problem
        self._binding = Binding(problem) if len(problem.pods) < LARGE else None  # what cannot be bound is found out
        self._beyond_help = beyond_help
        self._best = self._judged(Change(problem.careful, problem.variant), made)
        self._asked = {self._best.change}
        self._left = _questions(problem)
        self._least = len(_unplaced(made)) - len(kept_by_topology(made))

    @property
    def change(self) -> Change:
        return self._best.change

    def best(self) -> tuple[Problem, Plan]:
        tried = [changes(self._problem, self._best.change, self._best.plan)]
        while tried and not self._done:
            change = next(tried[-1], None)
            if change is None:
                tried.pop()
            elif self.ask(change):
                tried.append(changes(self._problem, self._best.change, self._best.plan))
        for change in further(self._problem, self._best.change, self._best.plan):
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
        done = sum(best.left) <= self._least or kept_by_topology(best.plan) <= best.beyond_help
        return self._left <= 0 or (done and not uneven)

    def ask(self, change: Change) -> bool:
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

    def _judged(self, change: Change, made: Plan) -> _Answer:
        left = self._binding.stuck(made) if self._binding is not None else []
        if made.uneven and self._binding is not None and not left:
            made = replace(made, uneven=False)
        by_priority = _by_priority(self._problem, (*_unplaced(made), *left))
        return _Answer(change, made, bool(left), by_priority, self._beyond_help.of(made))


def _unplaced(made: Plan) -> list[str]:
    return [uid for each in made.unplaced for uid in each.pods]


def _by_priority(problem: Problem, uids: Iterable[str]) -> tuple[int, ...]:
    """How many of the pods are of each priority, the highest first, those of buffers last. Less is better."""
    ranks = {pod.uid: (not pod.virtual, problem.shapes[pod.shape].priority) for pod in problem.pods}
    left = Counter(ranks[uid] for uid in uids)
    return tuple(left[rank] for rank in sorted(set(ranks.values()), reverse=True))
